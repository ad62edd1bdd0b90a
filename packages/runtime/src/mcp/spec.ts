/**
 * An MCP server: a program that this process starts and talks to over its standard streams, or an address of one that
 * runs elsewhere. `${NAME}` in `args`, `env`, `url` and `headers` stands for a variable of the deck's environment.
 */
export type McpServer = McpProgram | McpAddress;

/** Servers by name. The tools of `notes` are called `mcp_notes_…`. */
export type McpServers = Readonly<Record<string, McpServer>>;

/** A server that this process starts. */
export interface McpProgram {
  readonly command: string;
  readonly args?: readonly string[];
  /** Its environment, beside `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL` and `TERM` of the deck. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its working directory. Default: that of the deck. */
  readonly cwd?: string;
  /** Timeout of a call in milliseconds, instead of `limits.toolTimeoutMs`. */
  readonly timeoutMs?: number;
}

/** A server that speaks streamable HTTP. */
export interface McpAddress {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Timeout of a call in milliseconds, instead of `limits.toolTimeoutMs`. */
  readonly timeoutMs?: number;
}

/** What the name of a server looks like: it is a part of the names of its tools. */
const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/;

/** How the names of the tools of a server begin. */
export function prefixOf(server: string): string {
  return `mcp_${server}_`;
}

/** The server that has a tool of this name, whether it does or not; undefined for a tool of no server. Pure. */
export function serverOf(tool: string, servers: McpServers = {}): string | undefined {
  return Object.keys(servers).find((name) => {
    const prefix = prefixOf(name);
    return tool.startsWith(prefix) && tool.length > prefix.length;
  });
}

/** Why servers cannot have these names; undefined when they can. Pure. */
export function nameFault(
  names: readonly string[],
): { readonly name: string; readonly why: string } | undefined {
  for (const name of names) {
    if (!namePattern.test(name))
      return { name, why: 'must have a name of 1 to 32 letters, digits, _ and -, which no sign begins' };
    const other = names.find((one) => one !== name && name.startsWith(`${one}_`));
    if (other !== undefined)
      return { name, why: `must have another name: tools of '${other}' could have the names of its tools` };
  }
  return undefined;
}

/** A server whose variables are replaced by their values. */
export function expanded(server: McpServer, env: Readonly<Record<string, string | undefined>>): McpServer {
  const text = (value: string) =>
    value.replaceAll(/\$\{([A-Za-z_]\w*)\}/g, (_, name: string) => {
      const found = env[name];
      if (found === undefined) throw new Error(`the variable ${name}, which it names, is not set`);
      return found;
    });
  const texts = (values: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(value)]));
  if ('url' in server) {
    const { url, headers } = server;
    return { ...server, url: text(url), ...(headers !== undefined && { headers: texts(headers) }) };
  }
  const { args, env: own } = server;
  return {
    ...server,
    ...(args !== undefined && { args: args.map(text) }),
    ...(own !== undefined && { env: texts(own) }),
  };
}
