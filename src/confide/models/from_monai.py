"""Networks that MONAI keeps well, with the sizes of the papers: attention U-Net, U-Net++, and a U-Net for volumes."""

from __future__ import annotations

from types import ModuleType

from torch import Tensor, nn

from confide.core.errors import MissingExtra

WIDTHS = (64, 128, 256, 512, 1024)


class First(nn.Module):
    """A network that gives several outputs, of which the first is meant."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        first: Tensor = self.network(images)[0]
        return first


def attention_unet(channels: int = 1, classes: int = 4, dims: int = 2) -> nn.Module:
    """Attention U-Net (Oktay et al., 2018), 64 to 1,024 channels; sides must be multiples of 16."""
    made: nn.Module = _nets().AttentionUnet(dims, channels, classes, WIDTHS, strides=(2, 2, 2, 2))
    return made


def unet_plus_plus(channels: int = 1, classes: int = 4, dims: int = 2) -> nn.Module:
    """U-Net++ (Zhou et al., 2018) without deep supervision; sides must be multiples of 16."""
    return First(_nets().BasicUNetPlusPlus(dims, channels, classes))


def unet_3d(channels: int = 1, classes: int = 4) -> nn.Module:
    """A residual U-Net for volumes; sides must be multiples of 16."""
    made: nn.Module = _nets().UNet(3, channels, classes, (16, 32, 64, 128, 256), (2, 2, 2, 2), num_res_units=2)
    return made


def _nets() -> ModuleType:
    try:
        from monai.networks import nets
    except ModuleNotFoundError as error:
        raise MissingExtra("monai", "segmentation") from error
    found: ModuleType = nets
    return found
