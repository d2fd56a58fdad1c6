# Planner, solver, writer: each adds one to the last value. How it keeps what it hears from one run to the next is its first argument.
import hashlib, http.client, json, os, re, sys

kind, value = sys.argv[1:3]


def last(text):
    return int((re.findall(r"VALUE=(-?\d+)", text) or [0])[-1])


def ask(who, user):
    host, path = re.match(r"http://([^/]+)(/.*)", os.environ["OPENAI_BASE_URL"]).groups()
    messages = [{"role": "system", "content": f"You are the {who}."}, {"role": "user", "content": user}]
    client = http.client.HTTPConnection(host)
    body = json.dumps({"model": "m", "messages": messages})
    client.request("POST", path + "/chat/completions", body, {"content-type": "application/json", "x-aegis-agent": who})
    return json.loads(client.getresponse().read())["choices"][0]["message"]["content"]


def solve(plan):
    if not kind.startswith("disk"):
        return ask("solver", plan)
    key = " ".join(plan.split()) if kind == "disk-by-words" else plan
    place = "node-" + hashlib.sha256(key.encode()).hexdigest()
    if not os.path.exists(place):
        reply = ask("solver", plan)
        open(place, "w").write(reply)
    return open(place).read()


plan = ask("planner", f"VALUE={value}")
solved = solve(plan)
words = ask("writer", plan + " " + solved)
if kind.startswith("memory"):
    # A bad end is remembered for good, and spoils whatever comes after it.
    place = "memory-" + value
    spoilt = os.path.exists(place) and len(open(place).read()) >= (6 if kind == "memory" else 1)
    if last(words) != int(value) + 3:
        open(place, "a").write("x")
    print("ANSWER:", 0 if spoilt else last(words))
else:
    print("ANSWER:", words if kind == "talk" else last(words))
