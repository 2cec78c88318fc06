// Server-sent events of a response, one after the other. `EventSource` could not send a key.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const event = { id: "", data: "" };
      for (const line of frame.split("\n")) {
        const [, name, text] = /^(id|data): ?(.*)$/.exec(line) ?? [];
        if (name) event[name] += text;
      }
      // a comment only says that the stream lives
      if (event.data) yield event;
    }
  }
}
