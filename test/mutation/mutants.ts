/** A known bug of such stores, put back in, and the test that must not let it pass (T31). */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** Occurs once in the file. */
  readonly find: string;
  readonly replace: string;
  /** A test file that fails with the bug in. */
  readonly test: string;
  /** Only tests of these names, where the rest of the file takes long. */
  readonly only?: string;
}

const tape = (name: string): string => `packages/tape/src/${name}.ts`;
const graph = (name: string): string => `packages/graph/src/${name}.ts`;
const runtime = (name: string): string => `packages/runtime/src/${name}.ts`;

export const mutants: readonly Mutant[] = [
  {
    name: 'what is acknowledged as durable is not synced',
    file: tape('open-database'),
    find: "const synchronous = durability === 'full' ? 2 : 1;",
    replace: 'const synchronous = 1;',
    test: 'test/integration/faults.sync-order.test.ts',
  },
  {
    name: 'a graph line is acknowledged before it is synced',
    file: graph('journal'),
    find: '      fdatasyncSync(fd);\n',
    replace: '',
    test: 'test/integration/faults.sync-order.test.ts',
  },
  {
    name: 'the graph line is written before the commit',
    file: tape('sqlite-store'),
    find: 'const forked = this.db.writeThrough(() => forkTape(this.#writer, this.need(parent), asked));',
    replace: `const forked = this.db.writeThrough(() => {
      const made = forkTape(this.#writer, this.need(parent), asked);
      this.#drainOutbox();
      return made;
    });`,
    test: 'test/integration/tape.crashes.test.ts',
  },
  {
    name: 'a torn tail is not sealed, so the next line is glued to it',
    file: graph('journal'),
    find: "(now.tail.torn ? '\\n' : '') + ",
    replace: '',
    test: 'test/unit/graph.journal.test.ts',
  },
  {
    name: 'a short write counts as a whole one',
    file: graph('journal'),
    find: 'done += n;',
    replace: 'done = bytes.length;',
    test: 'test/integration/graph.journal-faults.test.ts',
  },
  {
    name: 'a failed graph line is told as a failed act',
    file: tape('sqlite-store'),
    find: "if (typeof code === 'string' && /^(?:TAPE|GRAPH)_/.test(code)) return { graphLagging: true };",
    replace: '',
    test: 'test/integration/runtime.locks.test.ts',
  },
  {
    name: 'opening does not bring the graph file up to date',
    file: tape('sqlite-store'),
    find: 'if (this.#journal !== undefined) drainOutbox(this.db, this.#journal);',
    replace: '',
    test: 'test/integration/tape.processes.test.ts',
    only: 'killed between its commit and the file',
  },
  {
    name: 'an owner that was superseded may go on writing',
    file: tape('lease'),
    find: '    if (tape.epoch !== lease.epoch) throw fenced(tape.name);\n    return tape.epoch;',
    replace: '    return tape.epoch;',
    test: 'test/contract/sqlite-memory.test.ts',
  },
  {
    name: 'a process number that was used again counts as the same process',
    file: tape('owner'),
    find: 'return owner.pidStart !== undefined && start !== undefined && start !== owner.pidStart;',
    replace: 'return false;',
    test: 'test/integration/tape.leases.test.ts',
  },
  {
    name: 'a lease is given back while the inbox holds something',
    file: tape('lease'),
    find: '  if (inboxWaits(db, tape, inputs)) return false;\n',
    replace: '',
    test: 'test/contract/sqlite-memory.test.ts',
  },
  {
    name: 'opening leaves inboxes that nobody owns as they are',
    file: tape('sqlite-store'),
    find: 'for (const id of tapesWithInbox(this.#writer))',
    replace: 'for (const id of [] as number[])',
    test: 'test/integration/tape.crashes.test.ts',
  },
  {
    name: 'a transaction that reads first takes the lock only when it writes',
    file: tape('sqlite'),
    find: 'const result = this.#retry(() => guard(() => this.#transaction.immediate(act) as T));',
    replace: 'const result = this.#retry(() => guard(() => this.#transaction.deferred(act) as T));',
    test: 'test/integration/tape.locks.test.ts',
  },
  {
    name: 'nobody waits for a lock',
    file: tape('lock-wait'),
    find: 'const deadline = performance.now() + waitMs;',
    replace: 'const deadline = performance.now();',
    test: 'test/integration/tape.processes.test.ts',
    only: 'append to',
  },
  {
    name: 'the tables are made without looking again under the lock',
    file: tape('migrate'),
    find: '  db.write(() => {\n    const version = versionOf(db, path);',
    replace: '  const version = versionOf(db, path);\n  db.write(() => {',
    test: 'test/integration/tape.processes.test.ts',
    only: 'D501',
  },
  {
    name: 'a merge is keyed by something that changes when it is tried again',
    file: tape('merge'),
    find: 'const head = hex(childHead);',
    replace: 'const head = Math.random();',
    test: 'test/contract/sqlite-memory.test.ts',
  },
  {
    name: 'a fork may cut between a call and its result',
    file: tape('fork-span'),
    find: 'const base = asked === parent.head_seq ? parent.settled_seq : settledAt(db, parent, asked);',
    replace: 'const base = settledAt(db, parent, asked) === asked ? asked : asked;',
    test: 'test/contract/sqlite-memory.test.ts',
  },
  {
    name: 'files can be read by others',
    file: tape('place'),
    find: '    fchmodSync(fd, 0o600);',
    replace: '    fchmodSync(fd, 0o644);',
    test: 'test/unit/tape.opening.test.ts',
  },
  {
    name: 'an existing database is opened beside SQLite, which drops its locks',
    file: tape('place'),
    find: '    checkOwner(file, path, { stat, probe });',
    replace: "    checkOwner(file, path, { stat, probe });\n    closeSync(openSync(path, 'r'));",
    test: 'test/integration/tape.copies.test.ts',
    only: 'the locks',
  },
  {
    name: 'a search is read as a query language',
    file: tape('search'),
    find: `word.replaceAll('"', '""')`,
    replace: 'word',
    test: 'test/unit/tape.search.test.ts',
  },
  {
    name: 'a changed body verifies',
    file: tape('verify'),
    find: 'sha256(bodyText(row.salt, row.payload, row.meta)) !== row.body_hash',
    replace: 'row.payload.length === 0',
    test: 'test/unit/tape.verify.test.ts',
  },
  {
    name: 'lines of a transcript are split at U+2028',
    file: runtime('import/byte-lines'),
    find: 'chunk.indexOf(0x0a); to',
    replace:
      "[chunk.indexOf(0x0a), chunk.indexOf('\\u2028')].filter((at) => at !== -1).sort((a, b) => a - b)[0] ?? -1; to",
    test: 'test/unit/import.lines.test.ts',
  },
  {
    name: 'a lone surrogate is sent to a provider',
    file: runtime('prompt'),
    find: 'return value.isWellFormed() ? value : value.toWellFormed();',
    replace: 'return value;',
    test: 'test/unit/runtime.answers.test.ts',
  },
  {
    name: 'a call that a crash left open is run again',
    file: runtime('orphans'),
    find: "call.state === 'begun' && toolOf(tools, call.toolName)?.safeToRepeat === true",
    replace: "call.state === 'begun' && toolOf(tools, call.toolName) !== undefined",
    test: 'test/integration/runtime.crashes.test.ts',
  },
  {
    name: 'a call that was approved before a kill is run again',
    file: runtime('batch'),
    find: "if (call.state !== 'begun')\n",
    replace: "if (call.state === 'held')\n",
    test: 'test/integration/runtime.waiting.test.ts',
    only: 'call/ran',
  },
  {
    name: 'calls are run after a write that failed',
    file: runtime('perform'),
    find: '      if (!isUnstorable(error)) broken.abort(error);\n',
    replace: '',
    test: 'test/integration/runtime.failing-store.test.ts',
    only: 'any write',
  },
  {
    name: 'a run that was started at once is forgotten by the end of the one before',
    file: runtime('worker'),
    find: 'const served = work().catch((error) => {',
    replace: 'const served = work().finally(() => this.#leave()).catch((error) => {',
    test: 'test/unit/runtime.sending.test.ts',
    only: 'at once, and send to it',
  },
  {
    name: 'a tool that a child may not call comes back to its own children',
    file: runtime('settings'),
    find: 'allowed = new Set(tools).intersection(allowed ?? new Set(tools));',
    replace: 'allowed ??= new Set(tools);',
    test: 'test/unit/runtime.budgets.test.ts',
    only: 'tools that a child may not call',
  },
  {
    name: 'what a sibling was promised is given away twice',
    file: runtime('budget'),
    find: 'const promised = terms.treeBudget ?? terms.budget ?? {};',
    replace: 'const promised: Budget = {};',
    test: 'test/unit/runtime.budgets.test.ts',
    only: 'what a sibling was promised',
  },
  {
    name: 'a result that was to start its parent does not',
    file: tape('merge'),
    find: 'if (draft.notify === true && !discard)',
    replace: 'if (draft.notify === true && discard)',
    test: 'test/unit/runtime.delegate-tool.test.ts',
    only: 'with notify_parent',
  },
  {
    name: 'an aborted run leaves its children running',
    file: runtime('run'),
    find: "    else stop.addEventListener('abort', stopChildren, { once: true });\n",
    replace: '',
    test: 'test/unit/runtime.aborts.test.ts',
    only: 'is aborted with it',
  },
  {
    name: 'of an answer under way nothing is saved',
    file: runtime('chunk-writer'),
    find: '        await save(saved);\n',
    replace: '',
    test: 'test/integration/runtime.killed-streams.test.ts',
  },
  {
    name: 'what waits in an inbox is refused when the disk fails',
    file: tape('inbox'),
    find: "['TAPE_FENCED', 'TAPE_IO', 'TAPE_LOCKED']",
    replace: "['TAPE_FENCED']",
    test: 'test/integration/faults.in-process.test.ts',
    only: 'of drain',
  },
  {
    name: 'a lease that was given back can still write',
    file: tape('lease'),
    find: "  db.run('UPDATE tape SET epoch = epoch + 1 WHERE id = @id', { id: tape.id });\n",
    replace: '',
    test: 'test/contract/sqlite-memory.test.ts',
  },
  {
    name: 'a live lease is taken over',
    file: tape('lease'),
    find: '  needIdle(db, tape, now);\n  const epoch = tape.epoch + 1;',
    replace: '  const epoch = tape.epoch + 1;',
    test: 'test/contract/sqlite-memory.test.ts',
  },
  {
    name: 'the same spawn key makes another child',
    file: tape('fork'),
    find: 'const spawnKey = request.key ?? ulid;',
    replace: 'const spawnKey = ulid;',
    test: 'test/contract/sqlite-memory.test.ts',
  },
  {
    name: 'a redaction erases nothing',
    file: tape('redact'),
    find: 'SET payload = NULL, meta = NULL, salt = NULL WHERE',
    replace: 'SET meta = NULL, salt = NULL, payload = NULL WHERE 0 AND',
    test: 'test/contract/sqlite-memory.test.ts',
  },
  {
    name: 'the journal trusts a tail that somebody else has written behind',
    file: graph('journal'),
    find: '    seen.size === there.size &&\n    seen.mtimeMs === there.mtimeMs',
    replace: '    seen.size <= there.size',
    test: 'test/unit/graph.journal.test.ts',
  },
  {
    name: 'the directory of a new home is not synced',
    file: tape('place'),
    find: '    syncParents(dir, made);\n',
    replace: '',
    test: 'test/integration/faults.sync-order.test.ts',
  },
  {
    name: 'a line is written to the graph file before a fast commit is on disk',
    file: tape('sqlite'),
    find: 'return this.#writeAt(2, act);',
    replace: 'return this.write(act);',
    test: 'test/integration/faults.power-cut.test.ts',
  },
  {
    name: 'an answer that broke off goes back as if its provider had finished it',
    file: tape('render'),
    find: 'parts.map(unsigned)',
    replace: 'parts',
    test: 'test/unit/tape.targets.test.ts',
  },
  {
    name: 'a signature of one provider is sent to another',
    file: tape('fit-part'),
    find: "return own ? asMade(part, dialect) : undefined;\n    case 'reasoning-file'",
    replace: "return part;\n    case 'reasoning-file'",
    test: 'test/unit/tape.targets.test.ts',
  },
  {
    name: 'a call that the provider ran goes back without its result',
    file: tape('provider-runs'),
    find: '      this.#open.clear();\n',
    replace: '',
    test: 'test/unit/tape.targets.test.ts',
  },
  {
    name: 'two messages of the assistant stand in a row',
    file: tape('fit'),
    find: "else if (last.role === 'assistant' && !continues)",
    replace: "else if (last.role === 'user' && continues)",
    test: 'test/unit/tape.targets.test.ts',
  },
  {
    name: 'a request ends with what the assistant said',
    file: runtime('prompt'),
    find: 'if (awaitsUser(messages))',
    replace: 'if (messages.length === 0)',
    test: 'test/unit/runtime.prompt.test.ts',
  },
];
