import type { Db } from '../db/db.ts';
import { type TapeRow, tapeByName } from './tape.ts';

const prefix = 'link:';

/** The alias by which one session stands for another that keeps its name: `link:` and that name. */
export function linkName(name: string): string {
  return prefix + name;
}

/** The name in such an alias; undefined for another alias. */
export function nameInLink(alias: string): string | undefined {
  return alias.startsWith(prefix) ? alias.slice(prefix.length) : undefined;
}

/** The sessions that a session stands for: they keep their history, and further messages go to it. */
export function linkedTo(db: Db, { id, realm }: Pick<TapeRow, 'id' | 'realm'>): readonly TapeRow[] {
  // `;` is the character after `:`.
  const rows = db.all<{ alias: string }>(
    `SELECT alias FROM alias WHERE tape_id = @id AND alias >= 'link:' AND alias < 'link;' ORDER BY alias`,
    { id },
  );
  return rows.flatMap(({ alias }) => {
    const tape = tapeByName(db, realm, nameInLink(alias) ?? '');
    return tape === undefined || tape.id === id || tape.lifecycle === 'staging' ? [] : [tape];
  });
}
