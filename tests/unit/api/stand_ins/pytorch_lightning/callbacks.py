# SPDX-License-Identifier: Apache-2.0
from pytorch_lightning import Callback  # noqa: F401
