"""Networks by name: ours, or any of another library as `timm:resnet18` or `package.module:function`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from torch import nn

from confide.core.errors import InputError, MissingExtra
from confide.core.options import check_options
from confide.models.deeplab import DeepLabV3
from confide.models.densenet import DenseNetBC
from confide.models.from_monai import attention_unet, unet_3d, unet_plus_plus
from confide.models.imagenet import resnet50_imagenet, resnet101_imagenet
from confide.models.mlp import MLP
from confide.models.resnet import resnet20_cifar, resnet50_cifar, resnet50_tiny, resnet101_cifar, resnet101_tiny
from confide.models.resnet_v2 import ResNet56V2
from confide.models.text_cnn import TextCNN
from confide.models.transunet import TransUNet
from confide.models.unet import UNet
from confide.models.vgg import VGG16

Make = Callable[..., nn.Module]


def mlp_1024(classes: int = 10, inputs: int = 784) -> MLP:
    """The network of label relaxation for MNIST: two hidden layers of 1,024."""
    return MLP(inputs, (1024, 1024), classes)


MODELS: Mapping[str, Make] = {
    "mlp-1024": mlp_1024,
    "resnet20-cifar": resnet20_cifar,
    "resnet50-cifar": resnet50_cifar,
    "resnet101-cifar": resnet101_cifar,
    "resnet50-tiny": resnet50_tiny,
    "resnet101-tiny": resnet101_tiny,
    "resnet50-imagenet": resnet50_imagenet,
    "resnet101-imagenet": resnet101_imagenet,
    "vgg16": VGG16,
    "resnet56v2": ResNet56V2,
    "densenet-bc-100-12": DenseNetBC,
    "text-cnn": TextCNN,
    "unet": UNet,
    "deeplabv3-resnet50": DeepLabV3,
    "transunet": TransUNet,
    "attention-unet": attention_unet,
    "unet-plus-plus": unet_plus_plus,
    "unet-3d": unet_3d,
}
# What is called in a library: a module, and a function that takes the name, or none where the name is in the module.
LIBRARIES: Mapping[str, tuple[str, str]] = {
    "timm": ("timm", "create_model"),
    "torchvision": ("torchvision.models", "get_model"),
    "smp": ("segmentation_models_pytorch", ""),
    "monai": ("monai.networks.nets", ""),
}
EXTRAS: Mapping[str, str] = {"monai": "segmentation"}


def build(name: str, **options: Any) -> nn.Module:
    """A network by its name, with the options of that network."""
    if name in MODELS:
        check_options(MODELS[name], options, name)
        return MODELS[name](**options)
    library, colon, rest = name.partition(":")
    if not colon:
        near = [known for known in MODELS if known.startswith(name)] or get_close_matches(name, MODELS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(
            f"there is no network {name!r}; {hint}there are {', '.join(MODELS)}, those of {', '.join(LIBRARIES)} as "
            "library:name, and your own as module:function"
        )
    module, function = LIBRARIES.get(library, (library, ""))
    home = _imported(module, library)
    if function:
        return _network(getattr(home, function)(rest, **options), name)
    if not hasattr(home, rest):
        near = get_close_matches(rest, dir(home), n=3)
        raise InputError(f"{module} has no {rest!r}{'; it has ' + ', '.join(near) if near else ''}")
    return _network(getattr(home, rest)(**options), name)


def _imported(module: str, library: str) -> Any:
    """Only what is missing is a missing extra; what is there and fails says so itself."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise
        if library in EXTRAS:
            raise MissingExtra(top, EXTRAS[library]) from error
        raise InputError(
            f"{module} cannot be imported: there is no package {top!r} here; pip install {_package(top)}"
        ) from error
    except RuntimeError as error:  # torchvision next to a torch that it was not built for
        raise InputError(f"{module} is installed but cannot be imported here: {error}") from error


def _package(module: str) -> str:
    return module.replace("_", "-")


def _network(made: Any, name: str) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise InputError(f"{name!r} gave a {type(made).__name__}, not a torch.nn.Module")
    return made
