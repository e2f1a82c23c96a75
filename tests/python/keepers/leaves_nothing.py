"""The question frees nothing, keeps nothing and changes no variable: in a function, after
locals(), while a function traces, and in a frame that an error has left."""
import gc
import sys
import weakref

import torch
from asking import find_keepers, note, noted, text_of


def ask():
    return [text_of(block) for block in find_keepers(noted)]


def function():
    x = note(torch.zeros(1024))
    ref = weakref.ref(x)
    before = ask()
    del x
    return before[0], ref() is None


def function_with_locals():
    x = note(torch.zeros(1024))
    ref = weakref.ref(x)
    names = locals()  # until Python 3.12 the dict in which the interpreter would look, too
    before = ask()
    del x, names
    locals()
    return before[0], ref() is None


def traced():
    def trace(frame, event, argument):
        if event == "call":
            ask()  # while the interpreter has the variables of `frame` in a dict
        return trace

    sys.settrace(trace)
    try:
        return function()
    finally:
        sys.settrace(None)


def after_error():
    try:
        function_that_fails()
    except ValueError as error:
        before = ask()
        ref = weakref.ref(error.__traceback__.tb_next.tb_frame.f_locals["x"])
    return before[0], ref() is None


def function_that_fails():
    x = note(torch.zeros(1024))
    raise ValueError(len(x))


def num_objects():
    gc.collect()
    return len(gc.get_objects())


def objects_left():
    ask()  # what is made once
    before = num_objects()
    for _ in range(3):
        ask()
    return num_objects() - before


for run in (function, function_with_locals, traced, after_error):
    noted.clear()
    text, is_freed = run()
    print(f"{run.__name__}: {text}: {'freed' if is_freed else 'kept'}")
noted.clear()
kept = note(torch.zeros(1024))
print("objects left", max(0, objects_left()))
