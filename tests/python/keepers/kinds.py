"""Kinds of tensors and storages. Not a line of their classes' code may run, and torch warns of
nothing."""
import warnings

import torch
from asking import find_keepers, note, noted, say
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Untouchable(type):
    def __hash__(cls):
        raise AssertionError("code of the program ran")

    __eq__ = __instancecheck__ = __hash__


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError("code of the program ran")

    @property
    def __class__(self):
        raise AssertionError("code of the program ran")


class Holder(metaclass=Untouchable):
    def __init__(self, tensor):
        object.__setattr__(self, "tensor", tensor)

    def __getattribute__(self, name):
        raise AssertionError("code of the program ran")

    __eq__ = __hash__ = __len__ = __iter__ = __bool__ = __getattribute__


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        raise AssertionError("code of the program ran")


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        raise AssertionError("code of the program ran")


wrapped = Wrapper(note(torch.zeros(1024)))
held = Holder(note(torch.zeros(1024)))
view = note(torch.zeros(2048))[1024:]
with FakeTensorMode():
    fake = torch.zeros(1 << 40)
storage_of_fake = fake.untyped_storage()
values = note(torch.zeros(1, 1024))
sparse = torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.long), values, (2, 1024))
del values
storage = note(torch.zeros(1024)).untyped_storage()
weight = torch.zeros(1024, requires_grad=True)
weight.sum().backward()
weight.cache = note(torch.zeros(1024))
note(weight.grad)
with FunctionMode(), DispatchMode(), warnings.catch_warnings(record=True) as warned:
    found = find_keepers(noted)
say(found)
print("warnings", len(warned))
