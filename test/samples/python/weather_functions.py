"""The local function, and a route to it by name."""

# sample: run a function by its name
def get_weather(city):
    return {"city": city, "weather": "晴", "temp_c": 22}

def call_function(name, args):
    if name == "get_weather":
        return get_weather(**args)
    raise ValueError(f"未知函数: {name}")
# end of sample
