/**
 * Runs in a python3 of its own: loads a handler, and hands it one event after another, on one event loop that goes on
 * between events. A text and no file of its own, so that it is there wherever this module is.
 */
export const PYTHON_RUNNER = `
import asyncio, importlib.util, inspect, json, os, re, socket, sys, traceback

def load(file, name):
    sys.path.insert(0, os.path.dirname(file))
    name = "moirai_hook_" + re.sub(r"[^A-Za-z0-9_]", "_", name)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    handle = getattr(module, "handle", None)
    if not callable(handle):
        raise TypeError("it has no function handle(event_type, context)")
    return handle

def describe(error):
    traceback.print_exception(type(error), error, error.__traceback__)
    return "".join(traceback.format_exception_only(type(error), error)).strip()[-1000:]

async def serve():
    gateway = socket.socket(fileno=3)
    gateway.set_inheritable(False)
    reader, writer = await asyncio.open_unix_connection(sock=gateway, limit=2 ** 26)
    handle = None
    def post(message):
        writer.write((json.dumps(message) + "\\n").encode())
    while True:
        line = await reader.readline()
        if not line:
            break
        message = json.loads(line)
        if message["type"] != "call":
            continue
        number, [given] = message["id"], message["args"]
        post({"type": "began", "id": number})
        try:
            if message["method"] == "load":
                handle = load(given["file"], given["name"])
            else:
                outcome = handle(given["type"], given)
                if inspect.isawaitable(outcome):
                    await outcome
            post({"type": "answer", "id": number, "value": None})
        except Exception as thrown:
            post({"type": "fault", "id": number, "fault": {"message": describe(thrown), "code": None}})
        await writer.drain()

try:
    asyncio.run(serve())
except (BrokenPipeError, ConnectionResetError):
    pass
`;
