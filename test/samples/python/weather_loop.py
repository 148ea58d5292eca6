"""The loop, until the model calls no more functions. It gets the input that weather_once.py has."""

import json

from openai import OpenAI
from weather_functions import call_function
from weather_tools import tools

client = OpenAI()
input_list = [{"role": "user", "content": "北京今天适合穿什么?"}]

# sample: loop until no function is called
for _ in range(10):                     # 上限兜底,防打转
    response = client.responses.create(
        model="gpt-6.1-terra", tools=tools, input=input_list,
    )
    calls = [i for i in response.output if i.type == "function_call"]
    if not calls:                       # 不再要工具,终局答案
        print(response.output_text)
        break
    input_list += response.output
    for item in calls:
        result = call_function(item.name, json.loads(item.arguments))
        input_list.append({
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": json.dumps(result, ensure_ascii=False),
        })
# end of sample
