"""The whole chain once: first call, run, return, call again."""

import json

from openai import OpenAI
from weather_functions import call_function
from weather_tools import tools

client = OpenAI()

# sample: return the results of one response
input_list = [{"role": "user", "content": "北京今天适合穿什么?"}]

response = client.responses.create(
    model="gpt-6.1-terra", tools=tools, input=input_list,
)
input_list += response.output          # 模型的输出条目原样带回

for item in response.output:
    if item.type != "function_call":
        continue
    result = call_function(item.name, json.loads(item.arguments))
    input_list.append({
        "type": "function_call_output",
        "call_id": item.call_id,       # 与调用条目一一配对
        "output": json.dumps(result, ensure_ascii=False),
    })

final = client.responses.create(
    model="gpt-6.1-terra", tools=tools, input=input_list,
)
print(final.output_text)
# end of sample
