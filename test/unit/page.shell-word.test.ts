import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { shellWord } from '../../packages/cli/ui/src/parts/shell-word.ts';

const names = [
  'main',
  'a.b/c-1@42',
  'it\'s $(touch x) `y` "z" \\',
  '-rf',
  '; rm -rf ~',
  '~root',
  '#x',
  'é',
  '!!',
  'a\nb',
  '',
];

test('a copied command has a name as one word, whatever is in it', () => {
  const line = `printf '%s\\0' ${names.map(shellWord).join(' ')}`;
  expect(execFileSync('sh', ['-c', line], { encoding: 'utf8' }).split('\0').slice(0, -1)).toEqual(names);
  expect(shellWord('main@42')).toBe('main@42');
});
