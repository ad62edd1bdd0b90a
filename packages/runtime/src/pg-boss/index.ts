/**
 * Children that run in any process of any machine: `@tapedeck/runtime/pg-boss`. `engine.ts` is a `RunEngine` whose
 * queues are those of pg-boss, in a schema beside that of the home, so that a fork and its start are one commit;
 * `line.ts` is the connection by which a worker hears which child to stop, and others see that it lives;
 * `abandoned.ts` gives the jobs of one that has ended to them; `state.ts` says what the queues have to do, and who
 * does it; `asking.ts` gives what the server refuses a code. Who has a child is said by the lease of its tape and what
 * it has done by the tape alone; a job only says that a worker should look. `pg-boss` and `pg` are loaded when the engine
 * is first used. Imports `delegation`, `config` and `errors`.
 *
 * @module @tapedeck/runtime/pg-boss
 */
export { type PgBossOptions, pgBoss } from './engine.ts';
export { type QueueState, queueState } from './state.ts';
