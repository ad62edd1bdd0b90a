import { type Random, seeded } from './seeded.ts';

type Raw = Readonly<Record<string, unknown>>;

/** A text that Claude Code appends to one of its files. */
export interface Write {
  readonly file: string;
  readonly text: string;
}

/** A conversation while it is written. */
interface Session {
  readonly id: string;
  readonly file: string;
  /** With which session the run began that writes it, where that is another one. */
  readonly run?: string;
  readonly chain: Raw[];
  /** What prompts follow: where another one can be typed anew. */
  places: (string | null)[];
  head: string | null;
}

/**
 * A subagent while it is written: in a file of its own, which older versions kept beside that of its session, or in the folder of a
 * run of a workflow, between the records of its session, or nested in them.
 */
interface Agent {
  readonly id: string;
  readonly call: string;
  readonly session: Session;
  readonly generation: 'file' | 'inline' | 'nested' | 'flat' | 'workflow';
  /** The run of a workflow that started it. */
  readonly run?: string;
  last: string | null;
}

/** The ways in which Claude Code has written copies. */
const copying = [
  'forkedFrom',
  'forkedFrom, new ids',
  'session_id',
  'requestSessionId',
  'nothing',
  'nothing, new ids',
];

const begins = {
  isSidechain: false,
  userType: 'external',
  cwd: '/srv/acme',
  version: '2.1.273',
  gitBranch: 'main',
};

/**
 * What Claude Code writes while it works, in the order of time: prompts, also typed anew, answers in parts with parallel calls,
 * reminders, lost parents, subagents of all generations in the foreground and in the background, resumed ones, those that know
 * what their parent knew, and those of workflows, copies, compactions, what a `/clear` begins, and notes beside the conversation.
 * Behind every second one is a proxy that numbers its requests anew after some of them.
 */
export function workOf(seed: number): readonly Write[] {
  return new Work(seeded(seed), seed % 2 === 0 ? Number.POSITIVE_INFINITY : 20).writes;
}

class Work {
  readonly writes: Write[] = [];
  readonly #random: Random;
  /** How many ids its requests have. */
  readonly #requests: number;
  readonly #sessions: Session[] = [];
  readonly #running: Agent[] = [];
  readonly #ended: Agent[] = [];
  #n = 0;
  #clock = Date.UTC(2026, 2, 1, 10);

  constructor(random: Random, requests: number) {
    this.#random = random;
    this.#requests = requests;
    this.#begin();
    for (let left = 2 + random.below(7); left > 0; left -= 1) this.#act(random.of(this.#sessions));
  }

  #act(session: Session): void {
    const { below, of } = this.#random;
    const what = below(20);
    const mayBegin = this.#sessions.length < 4 && session.head !== null;
    if (what < 3 && session.places.length > 0) this.#turn(session, of(session.places));
    else if (what < 5 && mayBegin) this.#copy(session);
    else if (what < 7 && session.chain.length > 3) this.#compact(session);
    else if (what === 7 && mayBegin) this.#clear(session);
    else if (what === 8) this.#resume(session);
    else if (what === 9) this.#workflow(session);
    else this.#turn(session, session.head);
  }

  #begin(run?: string): Session {
    const n = this.#sessions.length + 1;
    const id = `0000000${n}-0000-4000-8000-00000000000${n}`;
    const session = {
      id,
      file: `${id}.jsonl`,
      ...(run !== undefined && { run }),
      chain: [],
      places: [],
      head: null,
    };
    this.#sessions.push(session);
    return session;
  }

  #id(prefix: string): string {
    this.#n += 1;
    return `${prefix}${this.#n}`;
  }

  #time(): string {
    this.#clock += 500 + this.#random.below(900);
    return new Date(this.#clock).toISOString();
  }

  #put(file: string, record: Raw): void {
    this.writes.push({ file, text: `${JSON.stringify(record)}\n` });
  }

  #note({ file, id }: Session, record: Raw): void {
    this.#put(file, { ...record, sessionId: id });
  }

  /** Writes a record behind another one, and goes on from it unless it is a side way. */
  #say(session: Session, record: Raw, { parent = session.head, isSide = false } = {}): string {
    const { id, run, file } = session;
    const uuid = String(record.uuid ?? this.#id('x'));
    const of = { ...begins, sessionId: id, ...(run !== undefined && { session_id: run }) };
    const whole = { parentUuid: parent, ...of, ...record, uuid, timestamp: this.#time() };
    session.chain.push(whole);
    this.#put(file, whole);
    if (!isSide) session.head = uuid;
    return uuid;
  }

  #person(session: Session, content: unknown, more: Raw = {}, parent?: string): void {
    this.#say(
      session,
      { type: 'user', message: { role: 'user', content }, ...more },
      parent === undefined ? {} : { parent },
    );
  }

  /** The records of one answer, each with a block, and with more tokens than the one before it. */
  #answer(id: string): (block: Raw) => Raw {
    let tokens = this.#n % 7;
    const requestId = `req_${this.#n % this.#requests}`;
    return (block) => {
      tokens += 10;
      const usage = { input_tokens: 3, output_tokens: tokens };
      const message = {
        id,
        role: 'assistant',
        model: 'claude-x',
        content: [block],
        stop_reason: null,
        usage,
      };
      return { type: 'assistant', requestId, message };
    };
  }

  #turn(session: Session, parent: string | null): void {
    const { below, chance } = this.#random;
    const asked = this.#id('ask ');
    if (parent !== null && parent === session.head && chance(12)) {
      // What it follows is lost: a copy that is made later begins with it.
      session.head = this.#id('lost');
      session.places = [];
    } else {
      session.places.push(parent);
      session.head = parent;
    }
    this.#person(session, chance(50) ? asked : [{ type: 'text', text: asked }]);
    if (chance(20))
      this.#note(
        session,
        chance(50)
          ? { type: 'ai-title', aiTitle: `title of ${asked}` }
          : { type: 'custom-title', customTitle: `name of ${asked}` },
      );
    for (let left = below(3); left > 0; left -= 1) this.#remind(session);
    const isNamed = chance(50);
    if (isNamed) this.#note(session, { type: 'last-prompt', lastPrompt: asked, leafUuid: session.head });
    const rounds = below(3);
    for (let n = 1; n <= rounds; n += 1) if (!this.#round(session, n === rounds && chance(10))) return;
    const ends = this.#answer(this.#id('m'));
    if (chance(75))
      for (let left = 1 + below(2); left > 0; left -= 1)
        this.#say(session, ends({ type: 'text', text: this.#id('end ') }));
    if (chance(30)) this.#say(session, { type: 'system', subtype: 'turn_duration', durationMs: 5 });
    if (chance(30))
      this.#note(session, { type: 'file-history-snapshot', messageId: asked, snapshot: { n: this.#n } });
    if (isNamed) this.#note(session, { type: 'last-prompt', lastPrompt: asked, leafUuid: session.head });
  }

  #remind(session: Session): void {
    const text = `<system-reminder>${this.#id('mind ')}</system-reminder>`;
    const rendered = this.#random.chance(60) ? { rendered: [{ type: 'text', text }] } : {};
    this.#say(session, {
      type: 'attachment',
      attachment: { type: 'task_reminder', content: [] },
      ...rendered,
    });
  }

  /** An answer with calls, and their results, unless the user interrupts it. Returns whether there are results. */
  #round(session: Session, isInterrupted: boolean): boolean {
    const { below, chance } = this.#random;
    const says = this.#answer(this.#id('m'));
    if (chance(30)) this.#say(session, says({ type: 'thinking', thinking: this.#id('hm '), signature: 's' }));
    if (chance(60)) this.#say(session, says({ type: 'text', text: this.#id('say ') }));
    const results = Array.from({ length: 1 + below(3) }, () => this.#call(session, says));
    if (isInterrupted) return false;
    for (const returned of results) returned();
    if (chance(25))
      this.#say(session, {
        type: 'attachment',
        attachment: { type: 'queued_command', commandMode: 'prompt', prompt: this.#id('queued ') },
      });
    for (const agent of this.#running) if (chance(50)) this.#step(agent, 1);
    if (this.#running.length > 0 && chance(40)) this.#report(session);
    return true;
  }

  /** Returns what writes its result. */
  #call(session: Session, says: (block: Raw) => Raw): () => void {
    const { below, chance, of } = this.#random;
    const call = this.#id('toolu_');
    const name = chance(35) ? 'Task' : 'Bash';
    const made = this.#say(session, says({ type: 'tool_use', id: call, name, input: { of: call } }));
    const generation = of(['file', 'file', 'file', 'nested', 'inline', 'flat'] as const);
    const agent =
      name === 'Task' && chance(90) ? this.#start(session, call, { generation, spawnDepth: 1 }) : undefined;
    const isAsync = chance(40);
    return () => {
      if (chance(30))
        this.#say(
          session,
          { type: 'progress', parentToolUseID: call, data: { type: 'bash_progress', output: 'o' } },
          { parent: made, isSide: true },
        );
      if (agent !== undefined && isAsync) this.#running.push(agent);
      else if (agent !== undefined) {
        for (let left = below(4); left > 0; left -= 1) this.#step(agent, 1);
        this.#end(agent);
      }
      const started = isAsync ? { isAsync, status: 'async_launched' } : { status: 'completed' };
      const result = { type: 'tool_result', tool_use_id: call, content: this.#id('result ') };
      this.#person(
        session,
        [result],
        {
          sourceToolAssistantUUID: made,
          ...(agent !== undefined && { toolUseResult: { ...started, agentId: agent.id } }),
        },
        made,
      );
    };
  }

  #start(session: Session, call: string, { generation, ...meta }: Raw & Pick<Agent, 'generation'>): Agent {
    const agent: Agent = { id: this.#id('a'), call, session, generation, last: null };
    const [parentSessionId, parentLastUuid] = [session.id, session.head];
    const isFork = generation === 'file' && meta.spawnDepth === 1 && this.#random.chance(25);
    if (generation === 'file' && this.#random.chance(85)) {
      const text = JSON.stringify({
        agentType: 'general',
        description: `do ${agent.id}`,
        toolUseId: call,
        ...meta,
      });
      this.writes.push({ file: `${session.id}/subagents/agent-${agent.id}.meta.json`, text });
    }
    if (isFork)
      this.#put(fileOf(agent), {
        type: 'fork-context-ref',
        agentId: agent.id,
        parentSessionId,
        parentLastUuid,
      });
    this.#inside(agent, { type: 'user', message: { role: 'user', content: `task of ${agent.id}` } });
    return agent;
  }

  /** Writes a record of a subagent. */
  #inside(agent: Agent, record: Raw): string {
    const { id: agentId, session, call, generation, last } = agent;
    const uuid = this.#id('y');
    const message = { ...record, uuid, timestamp: this.#time() };
    agent.last = uuid;
    const own = {
      ...begins,
      isSidechain: true,
      agentId,
      sessionId: session.id,
      parentUuid: last,
      ...message,
    };
    if (generation !== 'nested') this.#put(fileOf(agent), own);
    else
      this.#say(
        session,
        { type: 'progress', parentToolUseID: call, data: { type: 'agent_progress', agentId, message } },
        { isSide: true },
      );
    return uuid;
  }

  #step(agent: Agent, depth: number): void {
    const says = this.#answer(this.#id('m'));
    if (this.#random.chance(50)) {
      this.#inside(agent, says({ type: 'text', text: this.#id('step ') }));
      return;
    }
    const call = this.#id('toolu_');
    const isNested = agent.generation === 'file' && depth < 2 && this.#random.chance(30);
    this.#inside(
      agent,
      says({ type: 'tool_use', id: call, name: isNested ? 'Task' : 'Read', input: { of: call } }),
    );
    const below = isNested
      ? this.#start(agent.session, call, {
          generation: 'file',
          parentAgentId: agent.id,
          spawnDepth: depth + 1,
        })
      : undefined;
    if (below !== undefined) {
      this.#step(below, depth + 1);
      this.#end(below);
    }
    const content = [{ type: 'tool_result', tool_use_id: call, content: this.#id('result ') }];
    const ended = below === undefined ? {} : { toolUseResult: { status: 'completed', agentId: below.id } };
    this.#inside(agent, { type: 'user', message: { role: 'user', content }, ...ended });
  }

  #end(agent: Agent): void {
    this.#ended.push(agent);
    this.#inside(agent, this.#answer(this.#id('m'))({ type: 'text', text: `end of ${agent.id}` }));
  }

  /** A later call resumes a subagent that has ended. */
  #resume(session: Session): void {
    const agent = this.#ended.find((one) => one.session === session && one.generation === 'file');
    if (agent === undefined) {
      this.#turn(session, session.head);
      return;
    }
    this.#person(session, this.#id('resume '));
    const returned = this.#called(session, 'Task', { status: 'completed', agentId: agent.id });
    this.#inside(agent, { type: 'user', message: { role: 'user', content: this.#id('more task ') } });
    this.#step(agent, 1);
    this.#end(agent);
    returned();
  }

  /** A run of a workflow, with the subagents in its folder, and its journal. */
  #workflow(session: Session): void {
    const { below, chance } = this.#random;
    this.#person(session, this.#id('run '));
    const [run, isAsync] = [this.#id('wf_'), chance(60)];
    const returned = this.#called(session, 'Workflow', {
      status: isAsync ? 'async_launched' : 'completed',
      runId: run,
    });
    if (isAsync) returned();
    const journal = `${session.id}/subagents/workflows/${run}/journal.jsonl`;
    for (let left = 1 + below(3); left > 0; left -= 1) {
      const agent: Agent = {
        ...{ id: this.#id('a'), call: run, session, run },
        ...{ generation: 'workflow', last: null },
      };
      const said = { key: `v2:${agent.id}`, agentId: agent.id };
      this.#put(journal, { type: 'started', ...said });
      this.#inside(agent, { type: 'user', message: { role: 'user', content: `task of ${agent.id}` } });
      this.#step(agent, 2);
      if (chance(20)) continue;
      this.#end(agent);
      this.#put(journal, { type: 'result', ...said, result: 'done' });
    }
    if (!isAsync) returned();
    else if (chance(70))
      this.#person(
        session,
        `<task-notification>\n<task-id>${run}</task-id>\n<status>completed</status>\n</task-notification>`,
      );
  }

  /** An answer with one call. Returns what writes its result. */
  #called(session: Session, name: string, toolUseResult: Raw): () => void {
    const call = this.#id('toolu_');
    const says = this.#answer(this.#id('m'));
    const made = this.#say(session, says({ type: 'tool_use', id: call, name, input: { of: call } }));
    const result = { type: 'tool_result', tool_use_id: call, content: this.#id('result ') };
    return () => this.#person(session, [result], { sourceToolAssistantUUID: made, toolUseResult }, made);
  }

  /** A subagent in the background ends, and its conversation, which went on, gets a note of that. */
  #report(session: Session): void {
    const [agent] = this.#running.splice(this.#random.below(this.#running.length), 1);
    if (agent === undefined) return;
    this.#end(agent);
    const status = this.#random.of(['completed', 'failed', 'killed']);
    const text = `<task-notification>\n<task-id>${agent.id}</task-id>\n<status>${status}</status>\n</task-notification>`;
    const attachment = { type: 'queued_command', commandMode: 'task-notification', prompt: text };
    if (this.#random.chance(50)) this.#say(session, { type: 'attachment', attachment });
    else this.#person(session, text);
  }

  /** A file that begins with what leads to the head of another one, and goes on. */
  #copy(of: Session): void {
    const way = this.#random.of(copying);
    const path = wayTo(of, of.head);
    const copy = this.#begin();
    const named = (id: unknown) =>
      way.endsWith('new ids') && typeof id === 'string' ? `${copy.id.slice(0, 8)}.${id}` : id;
    for (const { session_id: _, ...record } of path) {
      const again = {
        ...(JSON.parse(JSON.stringify(record), (field, value) =>
          /^(?:uuid|.*Uuid)$/.test(field) ? named(value) : field === 'uuids' ? value.map(named) : value,
        ) as Raw),
        sessionId: copy.id,
        ...(way.startsWith('forkedFrom') && { forkedFrom: { sessionId: of.id, messageUuid: record.uuid } }),
        ...(way === 'session_id' && { session_id: of.id }),
        ...(way === 'requestSessionId' && record.type === 'assistant' && { requestSessionId: of.id }),
      };
      copy.chain.push(again);
      this.#put(copy.file, again);
    }
    const ids = new Set(path.map(({ uuid }) => uuid));
    copy.places = of.places
      .filter((place) => place !== null && ids.has(place))
      .map((place) => String(named(place)));
    this.#turn(copy, String(named(of.head)));
  }

  /** A compaction, which keeps nothing, or the last records. */
  #compact(session: Session): void {
    const before = session.head;
    const anchorUuid = this.#id('s');
    const path = wayTo(session, before);
    const last = path.findLastIndex(
      ({ subtype, isCompactSummary }) => subtype === 'compact_boundary' || isCompactSummary === true,
    );
    const uuids = path.slice(Math.max(last + 1, path.length - this.#random.below(6))).map(({ uuid }) => uuid);
    const kept =
      uuids.length === 0
        ? {}
        : {
            preservedSegment: { headUuid: uuids[0], anchorUuid, tailUuid: uuids.at(-1) },
            preservedMessages: { anchorUuid, uuids },
          };
    const compactMetadata = { trigger: 'manual', preTokens: 100, ...kept };
    this.#say(
      session,
      {
        type: 'system',
        subtype: 'compact_boundary',
        uuid: this.#id('c'),
        logicalParentUuid: before,
        compactMetadata,
      },
      { parent: null },
    );
    this.#person(session, `summary ${anchorUuid}`, { uuid: anchorUuid, isCompactSummary: true });
    session.places = [];
  }

  /** The next session of a run. */
  #clear({ id, run = id }: Session): void {
    const next = this.#begin(run);
    this.#person(next, '<local-command-caveat>Caveat: they ran commands.</local-command-caveat>', {
      isMeta: true,
    });
    this.#person(next, '<command-name>/clear</command-name>');
    this.#turn(next, next.head);
  }
}

/** The file that has the records of a subagent. */
function fileOf({ id, session, generation, run }: Agent): string {
  if (generation === 'inline') return session.file;
  if (generation === 'flat') return `agent-${id}.jsonl`;
  return `${session.id}/subagents/${run === undefined ? '' : `workflows/${run}/`}agent-${id}.jsonl`;
}

/** The records that lead to one, the first one first. */
function wayTo({ chain }: Session, to: string | null): readonly Raw[] {
  const byId = new Map(chain.map((one) => [one.uuid, one]));
  const path: Raw[] = [];
  for (let at = byId.get(to); at !== undefined; at = byId.get(at.parentUuid ?? at.logicalParentUuid))
    path.unshift(at);
  return path;
}
