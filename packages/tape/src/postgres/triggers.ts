import type { Problem } from '../check/problem.ts';
import type { Db } from '../db/db.ts';
import { TapeError } from '../errors.ts';
import { migrations } from './migrations.ts';
import { triggers } from './schema.ts';

/** A trigger of the schema of this build. */
interface Trigger {
  /** The statement that makes it. */
  readonly sql: string;
  readonly table: string;
  /** The same as the server says it. */
  readonly definition: string;
  /** The name of the function that it calls. */
  readonly calls: string;
}

/** A function that triggers call. */
interface Called {
  /** The statement that makes it. */
  readonly sql: string;
  readonly body: string;
}

const called: ReadonlyMap<string, Called> = new Map(
  [
    ...triggers.matchAll(/CREATE FUNCTION (\w+)\(\) RETURNS trigger LANGUAGE plpgsql AS \$\$(.*?)\$\$;/gs),
  ].map(([sql, name = '', body = '']) => [name, { sql, body }]),
);

const own: ReadonlyMap<string, Trigger> = new Map(
  [
    ...triggers.matchAll(
      /CREATE TRIGGER (\w+) (BEFORE|AFTER) ([A-Z ]+) ON (\w+)( FOR EACH ROW)?\s+EXECUTE FUNCTION ((\w+)\(.*?\));/g,
    ),
  ].map(([sql, name = '', time, acts = '', table = '', each = ' FOR EACH STATEMENT', call, calls = '']) => {
    const ordered = ['INSERT', 'DELETE', 'UPDATE', 'TRUNCATE']
      .filter((act) => acts.includes(act))
      .join(' OR ');
    const definition = `CREATE TRIGGER ${name} ${time} ${ordered} ON ${table}${each} EXECUTE FUNCTION ${call}`;
    return [name, { sql, table, definition, calls }];
  }),
);

/** A trigger as the server has it. */
interface Found {
  readonly name: string;
  readonly table: string;
  readonly definition: string;
  /** O and A for one that acts, also where a replica applies changes; D and R for one that does not act. */
  readonly enabled: string;
  readonly body: string;
  readonly language: string;
  /** Whether the function has the rights of its owner, or settings of its own. */
  readonly special: number;
}

/**
 * Yields the differences of the triggers from those of this build. Without one of them, the tables are not append-only; an
 * added trigger can do anything. A session that does without triggers (`session_replication_role`) leaves no trace here.
 */
export function* triggerProblems(db: Db): Generator<Problem> {
  const found = triggersOf(db);
  for (const [name, trigger] of own) {
    const fault = faultOf(trigger, found.get(`${trigger.table} ${name}`));
    if (fault !== undefined) yield problem(`trigger ${name} is ${fault}`);
  }
  if (isOfNewer(db)) return;
  for (const { name, table } of found.values())
    if (own.get(name)?.table !== table)
      yield problem(`trigger ${name} on ${table} does not belong in a tape home`);
}

/**
 * Makes the triggers of this build anew that are missing, changed or disabled, with their functions. Those that others have
 * added stay: who has made them knows what they are for. Does nothing for a user who does not own the tables.
 */
export function mendTriggers(db: Db): void {
  const found = triggersOf(db);
  const wrong = [...own].filter(
    ([name, one]) => faultOf(one, found.get(`${one.table} ${name}`)) !== undefined,
  );
  try {
    db.write(() => {
      for (const name of new Set(wrong.map(([, { calls }]) => calls)))
        run(db, called.get(name)?.sql.replace('CREATE', 'CREATE OR REPLACE') ?? '');
      for (const [name, { table, sql }] of wrong) {
        run(db, `DROP TRIGGER IF EXISTS ${name} ON ${table}`);
        run(db, sql);
      }
    });
  } catch (error) {
    if (!(error instanceof TapeError) || error.data.reason !== 'privilege') throw error;
  }
}

/** In the words of the server, as the schema has it. */
function run(db: Db, sql: string): void {
  db.runBeside?.({ sql, values: [] });
}

function faultOf({ definition, calls }: Trigger, found: Found | undefined): string | undefined {
  if (found === undefined) return 'missing';
  if (!/[OA]/.test(found.enabled)) return 'disabled';
  const isSame =
    found.definition === definition &&
    found.body === called.get(calls)?.body &&
    found.language === 'plpgsql' &&
    found.special === 0;
  return isSame ? undefined : 'changed';
}

function triggersOf(db: Db): ReadonlyMap<string, Found> {
  const rows = db.all<Found>(
    `SELECT CAST(t.tgname AS text) AS name, CAST(c.relname AS text) AS "table", pg_get_triggerdef(t.oid, true) AS definition,
       CAST(t.tgenabled AS text) AS enabled, p.prosrc AS body, CAST(l.lanname AS text) AS language,
       CAST(p.prosecdef OR p.proconfig IS NOT NULL AS integer) AS special
       FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
       JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid JOIN pg_catalog.pg_language l ON l.oid = p.prolang
       WHERE NOT t.tgisinternal
         AND c.relnamespace = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = to_regclass('entry'))
       ORDER BY c.relname COLLATE "C", t.tgname COLLATE "C"`,
  );
  return new Map(rows.map((row) => [`${row.table} ${row.name}`, row]));
}

/** Whether a newer build has added something to the schema, which may have triggers. */
function isOfNewer(db: Db): boolean {
  return db
    .all<{ name: string }>('SELECT name FROM migration')
    .some(({ name }) => !Object.hasOwn(migrations, name));
}

function problem(message: string): Problem {
  return { code: 'trigger-wrong', session: null, seq: null, message };
}
