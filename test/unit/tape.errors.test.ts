import { GraphError } from '@tapedeck/graph';
import { SessionError } from '@tapedeck/runtime';
import { ImportError } from '@tapedeck/runtime/import';
import { TapeError } from '@tapedeck/tape';
import { CodedError } from '@tapedeck/tape/errors';
import { expect, test } from 'vitest';

const cause = new Error('why');
const facts = { data: { session: 'main' }, cause };

test.each([
  ['TapeError', new TapeError('TAPE_IO', 'no'), new TapeError('TAPE_IO', 'no', facts)],
  ['GraphError', new GraphError('GRAPH_IO', 'no'), new GraphError('GRAPH_IO', 'no', facts)],
  ['SessionError', new SessionError('SESSION_BUSY', 'no'), new SessionError('SESSION_BUSY', 'no', facts)],
  ['ImportError', new ImportError('IMPORT_EMPTY', 'no'), new ImportError('IMPORT_EMPTY', 'no', facts)],
])('a %s has its name, a code, facts and a cause, and is of no other class', (name, bare, full) => {
  expect(bare).toMatchObject({ name, message: 'no', data: {} });
  expect(bare.code).toMatch(/^[A-Z]+_[A-Z_]+$/);
  expect('cause' in bare).toBe(false);
  expect(full).toMatchObject({ name, message: 'no', code: bare.code, data: { session: 'main' } });
  expect(full.cause).toBe(cause);
  expect(full).toBeInstanceOf(CodedError);
  const classes = [TapeError, GraphError, SessionError, ImportError];
  expect(classes.filter((one) => full instanceof one).map((one) => one.name)).toEqual([name]);
});
