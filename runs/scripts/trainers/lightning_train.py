"""A small language model with Lightning, on flat files of uint16 tokens: replace the module and the data by your own."""

import argparse
import os
from pathlib import Path

import lightning
import slipway_helper
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar


class Tokens(torch.utils.data.Dataset):
    """Samples of `length` tokens and their successors."""

    def __init__(self, folder: Path, length: int) -> None:
        files = sorted(folder.glob("*.bin"))
        self.tokens = torch.cat([torch.from_file(str(file), size=file.stat().st_size // 2, dtype=torch.int16) for file in files])
        self.length = length

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, index: int) -> "tuple[torch.Tensor, torch.Tensor]":
        begin = index * self.length
        sample = self.tokens[begin : begin + self.length + 1].long() & 0xFFFF
        return sample[:-1], sample[1:]


class Model(lightning.LightningModule):
    """Token embeddings, a causal transformer and a linear output."""

    def __init__(self, vocabulary: int, width: int, layers: int, learning_rate: float) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(width, max(1, width // 64), 4 * width, batch_first=True, norm_first=True)
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.output = torch.nn.Linear(width, vocabulary)
        self.learning_rate = learning_rate

    def training_step(self, batch: "tuple[torch.Tensor, torch.Tensor]", _index: int) -> torch.Tensor:
        inputs, targets = batch
        mask = torch.nn.Transformer.generate_square_subsequent_mask(inputs.shape[1], device=inputs.device)
        logits = self.output(self.blocks(self.embedding(inputs), mask, is_causal=True))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), self.learning_rate)


def main() -> None:
    parser = argparse.ArgumentParser()
    # The driver passes it from the second attempt on.
    parser.add_argument("--ckpt_path")
    parser.add_argument("--max_steps", type=int, default=1000)
    parser.add_argument("--save_steps", type=int, default=100)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=65536)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    given = parser.parse_args()
    base = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
    data = torch.utils.data.DataLoader(Tokens(base / "input/data/train", given.length), given.batch_size, shuffle=True, drop_last=True)
    keeper = ModelCheckpoint(base / "checkpoints", every_n_train_steps=given.save_steps, save_top_k=3, monitor="step", mode="max")
    trainer = lightning.Trainer(
        max_steps=given.max_steps,
        num_nodes=len(os.environ.get("SLIPWAY_HOSTS", "x").split(",")),
        logger=False,
        # Rich's bar, the default where rich is installed, prints nothing into a log before it ends.
        callbacks=[keeper, TQDMProgressBar(), slipway_helper.lightning_callback()],
    )
    model = Model(given.vocabulary, given.width, given.layers, given.learning_rate)
    trainer.fit(model, data, ckpt_path=given.ckpt_path)


if __name__ == "__main__":
    main()
