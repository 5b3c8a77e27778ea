# SPDX-License-Identifier: Apache-2.0
from lightning.pytorch import Callback  # noqa: F401
