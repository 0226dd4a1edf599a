#!/usr/bin/env python3
"""Writes test/fixtures/llm/chat.json: conversations as transformers renders them by templates of every family.

The templates are written here in the formats that the families document, with the parts of Jinja that published ones use.
Null stands for a conversation that a template refuses. With a Python that has transformers (tried: 5.18):

    python scripts/llm/chat-fixtures.py
"""

import json
from pathlib import Path

from jinja2.exceptions import TemplateError
from transformers.utils.chat_template_utils import _compile_jinja_template

chatml = """{% for message in messages %}
{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

alternating = """{%- for message in turns %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('The roles must alternate between user and assistant.') }}
    {%- endif %}
"""

# The templates, the first token and the last one.
templates = {
    "ChatML": (chatml, "", "<|im_end|>"),
    "Llama 2": (
        """{% if messages[0]['role'] == 'system' %}
    {% set turns = messages[1:] %}
    {% set system = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' %}
{% else %}
    {% set turns = messages %}
    {% set system = '' %}
{% endif %}
"""
        + alternating
        + """    {%- if message.role == 'user' %}
        {{- bos_token + '[INST] ' + (system if loop.first else '') + message.content.strip() + ' [/INST]' }}
    {%- else %}
        {{- ' ' ~ message.content | trim ~ ' ' ~ eos_token }}
    {%- endif %}
{%- endfor %}""",
        "<s>",
        "</s>",
    ),
    "Llama 3": (
        """{{- bos_token }}
{%- for message in messages %}
    {%- set head = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' %}
    {{- head + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt is defined and add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
        "<|begin_of_text|>",
        "<|eot_id|>",
    ),
    "Mistral that refuses a system": (
        "{{ bos_token }}{% set turns = messages %}"
        + alternating
        + """{% if message.role == 'user' %}{{ '[INST] ' ~ message.content ~ ' [/INST]' }}
{%- elif message.role == 'assistant' %}{{ message.content ~ eos_token }}
{%- else %}{{ raise_exception('Only user and assistant are known.') }}{% endif %}
{%- endfor %}""",
        "<s>",
        "</s>",
    ),
    "Mistral with the system last": (
        """{%- set system = messages[0].content if messages[0].role == 'system' else none %}
{%- set turns = messages[1:] if system is not none else messages %}
{{- bos_token }}
{%- for message in turns %}
    {%- if message.role == 'user' %}
        {%- if loop.last and system is not none %}
            {{- '[INST]' + system + '\\n\\n' + message.content + '[/INST]' }}
        {%- else %}
            {{- '[INST]' + message.content + '[/INST]' }}
        {%- endif %}
    {%- else %}
        {{- message.content + eos_token }}
    {%- endif %}
{%- endfor %}""",
        "<s>",
        "</s>",
    ),
    "Qwen 2 and SmolLM, with a system of their own": (
        """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"""
        """{{ '<|im_start|>system\\nYou answer briefly.<|im_end|>\\n' }}{% endif %}"""
        + chatml.removeprefix("{% for message in messages %}\n"),
        "",
        "<|im_end|>",
    ),
    "Qwen 3 that forgets thoughts": (
        """{%- set ns = namespace(last=messages | length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- if not ns.found and message.role == 'user' %}
        {%- set ns.found = true %}
        {%- set ns.last = messages | length - 1 - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content and loop.index0 < ns.last %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if tools %}{{- raise_exception('No tools were given.') }}{%- endif %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
""",
        "",
        "<|im_end|>",
    ),
    "Gemma that refuses a system": (
        """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('There is no role of a system.') }}{% endif %}
{% set turns = messages %}
"""
        + alternating
        + """    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
    {{- '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}
""",
        "<bos>",
        "<eos>",
    ),
    "Gemma 3, with the system in the first turn": (
        """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set prefix = '' -%}
    {%- set turns = messages -%}
{%- endif -%}
"""
        + alternating
        + """    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (prefix if loop.first else '') }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {{ raise_exception('Only texts are expected.') }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\\n' }}
{%- endif -%}
""",
        "<bos>",
        "<eos>",
    ),
    "Phi 3": (
        """{% for message in messages %}
  {% if message['content'] %}
{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}
  {%- endif %}
{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}
""",
        "<s>",
        "<|endoftext|>",
    ),
}

system = {"role": "system", "content": "Be kind.\nAnd short."}
user = {"role": "user", "content": "  What is \"é\" & <b>? \n"}
answer = {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nA letter. "}
again = {"role": "user", "content": "{{ no template }} 'x' \\ y"}
conversations = [
    [user],
    [system, user],
    [user, answer, again],
    [system, user, answer, again],
    [user, again],
    [{"role": "user", "content": ""}],
    [user, answer],
]

rows = []
for name, (template, bos, eos) in templates.items():
    compiled = _compile_jinja_template(template)
    said = []
    for messages in conversations:
        try:
            said.append(
                compiled.render(
                    messages=messages, add_generation_prompt=True, bos_token=bos, eos_token=eos, tools=None, documents=None
                )
            )
        except TemplateError:
            said.append(None)
    rows.append({"name": name, "template": template, "bos": bos, "eos": eos, "said": said})

place = Path(__file__).resolve().parent.parent.parent / "test/fixtures/llm/chat.json"
lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
place.write_text(f'{{\n  "conversations": {json.dumps(conversations, ensure_ascii=False)},\n  "templates": [\n{lines}\n  ]\n}}\n')
