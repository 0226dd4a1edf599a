#!/usr/bin/env python3
"""Writes test/fixtures/llm/transformers.json: what transformers says of small models of every family.

`npx tsx scripts/llm/folder-fixtures.ts FOLDER` writes the models, and with a Python that has torch and transformers
(tried: 5.18)

    python scripts/llm/folder-fixtures.py FOLDER

asks about the token behind a prompt of 16. Of the scores, every eighth is kept, and the config.json that
transformers itself writes, whose fields have other names than those of older files. Of models that turn texts by their
length, also the likeliest tokens behind the prompt, each computed with the keys and values of those before it.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

prompt = [33 + (i * 7919) % 90 for i in range(16)]
kept = 8
written = 40
# Fields that say nothing of the decoder.
dropped = {"architectures", "transformers_version", "dtype", "use_cache", "initializer_range", "output_router_logits"}

found = {}
for folder in sorted(Path(sys.argv[1]).iterdir()):
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    lost = {key: value for key, value in info.items() if value}
    if lost:
        raise SystemExit(f"{folder.name}: {lost}")
    with torch.no_grad():
        scores = model(torch.tensor([prompt])).logits[0, -1].float()
    config = {k: v for k, v in json.loads(model.config.to_json_string()).items() if k not in dropped}
    found[folder.name] = {"scores": [float(f"{x:.7g}") for x in scores[::kept].tolist()], "config": config}
    if "longrope" in folder.name or "dynamic" in folder.name:
        with torch.no_grad():
            said = model(torch.tensor([prompt]), use_cache=True)
            tokens = [int(said.logits[0, -1].argmax())]
            while len(tokens) < written:
                said = model(torch.tensor([[tokens[-1]]]), past_key_values=said.past_key_values, use_cache=True)
                tokens.append(int(said.logits[0, -1].argmax()))
        found[folder.name]["tokens"] = tokens

rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
place = Path(__file__).resolve().parent.parent.parent / "test/fixtures/llm/transformers.json"
place.write_text(f"{{\n{rows}\n}}\n")
