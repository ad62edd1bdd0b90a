/**
 * A store on a PostgreSQL server, for more than one machine: `@tapedeck/tape/postgres`. `store.ts` puts the groups of
 * `store` over a database (`db.ts`) whose answers are not there yet. The acts stay functions that cannot wait: `runner.ts`
 * runs an act in an attempt (`attempt.ts`), sends what it asked and wrote in one trip (`pipeline.ts`, in the words of
 * `dialect.ts`), and runs it again with the answer. `habits.ts` learns what acts ask, so that most of it is sent with the
 * first question (`guess.ts`); `assume.ts` keeps what the next act of a session's owner will find; `locks.ts` says which
 * of them wait for each other. `pages.ts` reads what can be long, `verified.ts` verifies it in a thread
 * (`verify-thread.ts`). `migrate.ts` makes the schema (`migrations.ts`, `schema.ts`) at an `address.ts`, `clock.ts` has
 * the time there, `listener.ts` hears of what others commit. `home.ts` opens the store of a program that may wait,
 * `server-home.ts`, which also compares the triggers (`triggers.ts`): `link.ts` has its connection in another thread
 * (`link-thread.ts`), and nothing runs again; on a standby, `replayed.ts` asks for what LISTEN would tell. Imports `store`
 * and what lies below.
 *
 * @module @tapedeck/tape/postgres
 */
export { openPostgresHome, type PostgresHomeOptions } from './home.ts';
export { openPostgresStore, openPostgresStore as postgres, type PostgresOptions } from './store.ts';
