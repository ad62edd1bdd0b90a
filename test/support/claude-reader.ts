/**
 * Counts what a Claude Code transcript contains, to compare an import with. It shares no code with the importer, and finds
 * each fact in another way where there is one: it looks at the whole file at once, and builds no tree, message or draft.
 */

type Raw = { readonly [field: string]: unknown };

/** What is in the files of one session. */
export interface Found {
  /** Records, the nested ones of subagents not included. */
  readonly records: number;
  /** Lines that are not whole JSON objects. */
  readonly bad: number;
  /** Uuids of the records with something that a person or a program said to the model. */
  readonly prompts: ReadonlySet<string>;
  /** Answers of the model, by their message ids. */
  readonly answers: ReadonlySet<string>;
  /** Ids of the calls that the agent executes. */
  readonly calls: ReadonlySet<string>;
  /** Ids of those that have a result somewhere. */
  readonly results: ReadonlySet<string>;
  /** The greatest figures of each answer, added up. */
  readonly tokens: Tokens;
  readonly compactions: number;
  /** Ids of subagents of which the files have messages. */
  readonly agents: ReadonlySet<string>;
}

/** Tokens, by the names that a tape has for them. */
interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

const tokenFields = {
  input: 'input_tokens',
  output: 'output_tokens',
  cacheRead: 'cache_read_input_tokens',
  cacheWrite: 'cache_creation_input_tokens',
} as const;

/** The JSON objects of a text, one on each line or several glued together; what cannot be parsed counts as bad. */
export function objectsIn(text: string): { readonly objects: readonly Raw[]; readonly bad: number } {
  const objects: Raw[] = [];
  let bad = 0;
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    let rest = line;
    while (rest !== '') {
      const end = wholeObject(rest);
      if (end === undefined) {
        bad += 1;
        break;
      }
      objects.push(JSON.parse(rest.slice(0, end)) as Raw);
      rest = rest.slice(end).trim();
    }
  }
  return { objects, bad };
}

/** Where the first object of a text ends: the first brace at which what is before it can be parsed. */
function wholeObject(text: string): number | undefined {
  if (isJson(text)) return text.length;
  for (let end = text.indexOf('}{') + 1; end > 0; end = text.indexOf('}{', end) + 1)
    if (isJson(text.slice(0, end))) return end;
  return undefined;
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
}

/** How the records of a main file follow each other. */
export interface FoundEdges {
  /** Conversations that begin anew in the middle of the file, as behind `/clear`. */
  readonly clears: number;
  /** Records that name no predecessor in the file, and have one. */
  readonly bridged: number;
}

const linked = new Set(['user', 'assistant', 'system', 'attachment', 'progress']);

/** Counts the edges of a main file: it follows each record with something to say to where its conversation begins. */
export function edgesIn(main: string): FoundEdges {
  const { objects } = objectsIn(main);
  const isMixed = objects.some(
    (one) => (one.type === 'user' || one.type === 'assistant') && one.isSidechain !== true,
  );
  const seen = new Set<unknown>();
  const chain = objects.filter((one) => {
    if (!linked.has(String(one.type)) || (isMixed && one.isSidechain === true)) return false;
    const isAgain = one.uuid !== undefined && seen.has(one.uuid);
    seen.add(one.uuid);
    return !isAgain;
  });
  const places = new Map(chain.map((one, i) => [one.uuid, i]));
  const bridged = new Set<number>();
  const before = (i: number) => chain.findLastIndex((one, j) => j < i && one.type !== 'progress');
  const parentOf = (i: number): number => {
    const one = chain[i] ?? {};
    const named = one.parentUuid ?? one.logicalParentUuid;
    const place = typeof named === 'string' ? places.get(named) : undefined;
    if (place !== undefined) return place;
    if (one.uuid === undefined && one.parentUuid === undefined) return before(i);
    const isSplit = one.subtype === 'compact_boundary' || one.isCompactSummary === true;
    if (typeof named !== 'string' && !isSplit) return -1;
    if (before(i) >= 0) bridged.add(i);
    return before(i);
  };
  const roots = new Set<number>();
  for (const [i, one] of chain.entries()) {
    const parent = parentOf(i);
    const isHeard =
      isPrompt(one) || (one.type === 'assistant' && one.isApiErrorMessage !== true && says(one));
    if (!isHeard) continue;
    let [at, next] = [i, parent];
    for (let steps = 0; next >= 0 && steps <= chain.length; steps += 1) [at, next] = [next, parentOf(next)];
    roots.add(at);
  }
  return { clears: Math.max(0, roots.size - 1), bridged: bridged.size };
}

/** Counts what the main file of a session and the files of its subagents contain. */
export function countedIn(main: string, agents: ReadonlyMap<string, string> = new Map()): Found {
  const { objects, bad } = objectsIn(main);
  const nested = objects.flatMap((record) => {
    const data = raw(record.data);
    return data.type === 'agent_progress' && typeof data.agentId === 'string'
      ? [{ agent: data.agentId, record: raw(data.message) }]
      : [];
  });
  const others = [...agents].map(([agent, text]) => ({ agent, ...objectsIn(text) }));
  const all = [
    ...objects,
    ...nested.map(({ record }) => record),
    ...others.flatMap((other) => other.objects),
  ];
  const spoken = all.filter((one) => one.type === 'assistant' && one.isApiErrorMessage !== true);
  const heard = all.filter((one) => one.type === 'user' && one.isCompactSummary !== true);
  const calls = new Set(spoken.flatMap((one) => blocks(one, 'tool_use').map(({ id }) => String(id))));
  const results = new Set(
    heard.flatMap((one) => blocks(one, 'tool_result').map((b) => String(b.tool_use_id))),
  );
  return {
    records: objects.length,
    bad: bad + others.reduce((sum, other) => sum + other.bad, 0),
    prompts: new Set(
      all.flatMap((one, i) => (isPrompt(one) ? [typeof one.uuid === 'string' ? one.uuid : `#${i}`] : [])),
    ),
    answers: new Set(spoken.flatMap((one, i) => (says(one) ? [answerOf(one, i)] : []))),
    calls,
    results: new Set([...calls].filter((id) => results.has(id))),
    tokens: tokensOf(spoken),
    compactions: objects.filter(({ subtype }) => subtype === 'compact_boundary').length,
    agents: new Set([...nested.map(({ agent }) => agent), ...agents.keys()]),
  };
}

function isPrompt(record: Raw): boolean {
  const { attachment, type, rendered, subtype } = record;
  if (type === 'attachment') {
    const { type: what } = raw(attachment);
    return what === 'queued_command' || what === 'file' || list(rendered).length > 0;
  }
  // What a command of the tool printed is sent with the next prompt.
  if (type === 'system')
    return subtype === 'local_command' && record.content !== '' && record.isDisplayOnly !== true;
  if (type !== 'user' || record.isCompactSummary === true) return false;
  const { content } = raw(record.message);
  if (typeof content === 'string') return content !== '';
  return list(content).some((block) => block.type !== 'tool_result' && block.text !== '');
}

/** Whether an answer has anything that can be shown; a thought without a text or a signature cannot. */
function says(record: Raw): boolean {
  const { content } = raw(record.message);
  if (typeof content === 'string') return content !== '';
  return list(content).some(
    (block) => !(block.text === '' || (block.thinking === '' && (block.signature ?? '') === '')),
  );
}

function answerOf(record: Raw, i: number): string {
  const { id } = raw(record.message);
  return typeof id === 'string' ? `${id} ${record.requestId ?? ''}` : `#${i}`;
}

function tokensOf(spoken: readonly Raw[]): Tokens {
  const most = new Map<string, number>();
  for (const [i, record] of spoken.entries()) {
    const usage = raw(raw(record.message).usage);
    for (const field of Object.values(tokenFields)) {
      const key = `${answerOf(record, i)} ${field}`;
      most.set(key, Math.max(most.get(key) ?? 0, Number(usage[field] ?? 0)));
    }
  }
  const sum = (field: string): number =>
    [...most].reduce((total, [key, count]) => (key.endsWith(` ${field}`) ? total + count : total), 0);
  return {
    input: sum(tokenFields.input),
    output: sum(tokenFields.output),
    cacheRead: sum(tokenFields.cacheRead),
    cacheWrite: sum(tokenFields.cacheWrite),
  };
}

function blocks(record: Raw, type: string): readonly Raw[] {
  return list(raw(record.message).content).filter((block) => block.type === type);
}

function list(value: unknown): readonly Raw[] {
  return Array.isArray(value) ? value.map(raw) : [];
}

function raw(value: unknown): Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Raw) : {};
}
