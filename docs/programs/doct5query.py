"""Train a small model that writes the queries of a passage (docT5query), from a trained encoder.

Type `.venv/bin/python -m docs.programs.doct5query` in the folder of cdmae. The paths are those of
`config/systems.yaml`, whose encoder `mlm` must have been trained.
"""

import torch
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader
from transformers import AutoTokenizer, DataCollatorForSeq2Seq, EncoderDecoderModel

from cdmae.collections.store import read_passages, read_qrels, read_queries

ENCODER = "results/systems/encoders/mlm"
COLLECTION = "results/systems/collections/pydocs"
WRITER = "data/writer"
EPOCHS = 6

passages = read_passages(COLLECTION).to_pandas()
texts = (passages["title"] + " " + passages["text"]).str.strip()
queries = read_queries(COLLECTION, "train")["text"]
judged = read_qrels(COLLECTION, "train").query("grade > 0 and passage < @texts.size")

tokenizer = AutoTokenizer.from_pretrained(ENCODER)
read = tokenizer(texts[judged["passage"]].tolist(), truncation=True, max_length=128)["input_ids"]
asked = tokenizer(queries[judged["query"]].tolist(), truncation=True, max_length=32)["input_ids"]
pairs = [
    {"input_ids": passage, "labels": query[1:]}  # the decoder adds [CLS]
    for passage, query in zip(read, asked, strict=True)
]

torch.manual_seed(42)
model = EncoderDecoderModel.from_encoder_decoder_pretrained(ENCODER, ENCODER)
for settings in (model.config, model.generation_config):
    settings.decoder_start_token_id = tokenizer.cls_token_id
    settings.eos_token_id = tokenizer.sep_token_id
    settings.pad_token_id = tokenizer.pad_token_id

batches = DataLoader(pairs, 32, shuffle=True, collate_fn=DataCollatorForSeq2Seq(tokenizer))
optimizer = torch.optim.AdamW(model.parameters())
schedule = OneCycleLR(optimizer, 1e-3, epochs=EPOCHS, steps_per_epoch=len(batches), pct_start=0.1)
for epoch in range(EPOCHS):
    losses = []
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
    print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.2f}")
model.save_pretrained(WRITER)
tokenizer.save_pretrained(WRITER)
