import { spawn } from 'node:child_process';
import { skipsPython } from './python.ts';

/** What a person at a terminal does: waits for a text, types, resizes the window, or closes it. */
export type Step =
  | { readonly until: string }
  | { readonly type: string }
  | { readonly signal: 'SIGHUP' | 'SIGTERM' }
  /** The terminal is closed. What comes then is not seen. */
  | { readonly hangUp: true }
  | { readonly rows: number; readonly columns: number };

/** A program on a terminal of its own. */
interface OnTerminal {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly rows?: number;
  readonly columns?: number;
  readonly steps?: readonly Step[];
}

/** All that the terminal received, and how the program ended: as the shell has it. */
interface Seen {
  readonly output: string;
  readonly code: number;
  /** Whether the program has left the terminal in a mode in which keys are not edited and shown. */
  readonly isRaw: boolean;
}

/** Says that the machine can make no terminal, as `skipsPython` does. */
export function skipsTerminals(what: string): boolean {
  return skipsPython(what);
}

/**
 * Gives a program a pseudo-terminal, and does the steps in turn. A step that waits for a text fails after 90 seconds: what
 * comes within a second takes half a minute on a busy machine.
 */
const driver = `
import fcntl, json, os, pty, select, signal, struct, sys, termios, time
order = json.loads(sys.argv[1])
def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
pid, fd = pty.fork()
if pid == 0:
    size(0, order["rows"], order["columns"])
    if "cwd" in order: os.chdir(order["cwd"])
    os.execvpe(order["argv"][0], order["argv"], order["env"])
seen, found, missing = b"", 0, None
def read(wait):
    global seen
    if fd is None: return False
    if not select.select([fd], [], [], wait)[0]: return True
    try: part = os.read(fd, 65536)
    except OSError: part = b""
    seen += part
    return part != b""
for step in order["steps"]:
    if "until" in step:
        text, end = step["until"].encode(), time.time() + 90
        while text not in seen[found:]:
            if time.time() > end or not read(0.1):
                missing = step["until"]
                break
        if missing is not None: break
        found = seen.index(text, found) + len(text)
    elif "hangUp" in step:
        os.close(fd)
        fd = None
    elif "signal" in step: os.kill(pid, getattr(signal, step["signal"]))
    elif "type" in step: os.write(fd, step["type"].encode())
    else: size(fd, step["rows"], step["columns"])
end = time.time() + 90
while read(1):
    if time.time() > end:
        os.kill(pid, 9)
        missing = missing or "the end of the program"
        break
status = os.waitpid(pid, os.WNOHANG)
while status[0] == 0:
    time.sleep(0.05)
    if time.time() > end:
        os.kill(pid, 9)
        missing = missing or "the end of the program"
        end = float("inf")
    status = os.waitpid(pid, os.WNOHANG)
code = os.waitstatus_to_exitcode(status[1])
is_raw = fd is not None and not termios.tcgetattr(fd)[3] & termios.ICANON
json.dump({"output": seen.decode("utf-8", "replace"), "code": 128 - code if code < 0 else code, "isRaw": is_raw, "missing": missing}, sys.stdout)
`;

/**
 * Runs a program on a pseudo-terminal.
 * @throws Error when a text that a step waits for does not come, or the program does not end
 */
export async function onTerminal({
  argv,
  env,
  cwd,
  rows = 24,
  columns = 80,
  steps = [],
}: OnTerminal): Promise<Seen> {
  const order = JSON.stringify({ argv, env: { TERM: 'xterm-256color', ...env }, cwd, rows, columns, steps });
  const child = spawn('python3', ['-c', driver, order], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) text += chunk;
  const { missing, ...seen } = JSON.parse(text) as Seen & { readonly missing: string | null };
  if (missing !== null) throw new Error(`the terminal did not show ${missing}: ${seen.output}`);
  return seen;
}
