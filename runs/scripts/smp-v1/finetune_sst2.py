"""Fine-tunes GPT-J 6B on GLUE sst2 with SMP v1 in FP16, with tensor or pipeline parallelism according to the job's mp_parameters.

Channels `train` and `test` contain GLUE's files (train.tsv, dev.tsv: a header, then sentence<TAB>label).
Pipeline variant: tensor_parallel_degree 1, pipeline_parallel_degree 2; the library partitions the model (auto_partition).
"""

import argparse
import csv
import os
from pathlib import Path

import smdistributed.modelparallel.torch as smp
import torch
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AutoModelForCausalLM, AutoTokenizer

WORDS = {"0": "negative", "1": "positive"}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name_or_path", default="EleutherAI/gpt-j-6b")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--train-batch-size", type=int, default=32, help="per tensor-parallel group with prescaled_batch")
    parser.add_argument("--max-context-width", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    # The toolkit passes all hyperparameters, including mp_parameters.
    return parser.parse_known_args()[0]


def sentences(channel):
    for file in sorted(Path(os.environ["SM_CHANNEL_" + channel]).glob("*.tsv")):
        for row in csv.DictReader(file.open(encoding="utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE):
            yield f"{row['sentence'].strip()} Sentiment: {WORDS[row['label']]}"


def loader(channel, tokenizer, args):
    texts = list(sentences(channel))
    # With prescaled_batch, the ranks of a tensor-parallel group read the same batch.
    prescaled = smp.state.cfg.prescaled_batch
    replicas, replica = (smp.rdp_size(), smp.rdp_rank()) if prescaled else (smp.dp_size(), smp.dp_rank())
    sampler = DistributedSampler(texts, num_replicas=replicas, rank=replica, drop_last=True)

    def collate(batch):
        made = tokenizer(batch, padding="max_length", truncation=True, max_length=args.max_context_width, return_tensors="pt")
        labels = made["input_ids"].masked_fill(made["attention_mask"] == 0, -100)
        return made["input_ids"], made["attention_mask"], labels

    # The batch size must be constant and divisible by the number of microbatches.
    return DataLoader(texts, batch_size=args.train_batch_size, sampler=sampler, collate_fn=collate, drop_last=True)


@smp.step
def train_step(model, ids, mask, labels):
    loss = model(input_ids=ids, attention_mask=mask, labels=labels)["loss"]
    model.backward(loss)
    return loss


@smp.step
def test_step(model, ids, mask, labels):
    return model(input_ids=ids, attention_mask=mask, labels=labels)["loss"]


def main():
    args = arguments()
    smp.init()
    device = torch.device("cuda", smp.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(42)

    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    tokenizer.pad_token = tokenizer.eos_token
    dtype = torch.float16 if smp.state.cfg.fp16 else torch.get_default_dtype()
    with smp.model_creation(tensor_parallelism=smp.tp_size() > 1, dtype=dtype):
        model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
    model = smp.DistributedModel(model)
    # Created after the wrapper, which replaces the modules that it distributes.
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    scaling = {"static_loss_scale": None, "dynamic_loss_scale": True} if smp.state.cfg.fp16 else {}
    optimizer = smp.DistributedOptimizer(optimizer, **scaling)

    train, test = loader("TRAIN", tokenizer, args), loader("TEST", tokenizer, args)
    for epoch in range(args.epochs):
        train.sampler.set_epoch(epoch)
        model.train()
        for step, batch in enumerate(train):
            optimizer.zero_grad()
            loss = train_step(model, *(tensor.to(device) for tensor in batch)).reduce_mean()
            if smp.state.cfg.fp16:
                optimizer.clip_master_grads(1.0)
            optimizer.step()
            if smp.rank() == 0:
                print(f"epoch={epoch} step={step} loss={loss.item():.4f}", flush=True)
        model.eval()
        with torch.no_grad():
            losses = [test_step(model, *(tensor.to(device) for tensor in batch)).reduce_mean() for batch in test]
        if smp.rank() == 0 and losses:
            print(f"epoch={epoch} test_loss={torch.stack(losses).mean().item():.4f}", flush=True)
    smp.save_checkpoint(os.environ["SM_MODEL_DIR"], tag="gptj.pt", partial=False, model=model)


if __name__ == "__main__":
    main()
