import { createHash } from 'node:crypto';
import { type PromptParts, systemPrompt } from '@tapedeck/runtime';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const file = (label: string, text: string) => ({ path: `/code/${label}`, label, text });

const parts = {
  manifest: { Role: 'You keep the shop.', Tone: 'Be brief.' },
  project: [file('shop/CLAUDE.md', 'inner'), file('AGENTS.md', 'outer'), file('shop/AGENTS.md', 'middle')],
  skills: [
    { name: 'release', description: 'How to release' },
    { name: 'count', description: 'How to count' },
  ],
  environment: {
    platform: 'linux x64',
    workspace: '/code/shop',
    branch: 'main',
    date: '2026-11-21',
    model: 'open',
  },
  tools: [
    { name: 'look', description: 'Look at a shelf', schema: { type: 'object' } },
    { name: 'add', schema: { type: 'object' } },
  ],
} satisfies PromptParts;

test('the sections have one order, and the nearest of the project is last', () => {
  const { text, sources } = systemPrompt(parts);
  expect(text).toBe(`# Role

You keep the shop.

# Tone

Be brief.

# Project instructions

From the outermost directory inward. If they conflict, the later one applies.

<file path="AGENTS.md">
outer
</file>

<file path="shop/AGENTS.md">
middle
</file>

<file path="shop/CLAUDE.md">
inner
</file>

# Skills

Each skill describes one kind of work. Read it with the tool read_skill before you do that work.

- count: How to count
- release: How to release

# Environment

- Platform: linux x64
- Workspace: /code/shop
- Git branch: main
- Date: 2026-11-21
- Model: open

# Tools

## add

Arguments, as JSON Schema: {"type":"object"}

## look

Look at a shelf

Arguments, as JSON Schema: {"type":"object"}`);
  expect(sources.map(({ section, path }) => path ?? section)).toEqual([
    'manifest',
    '/code/AGENTS.md',
    '/code/shop/AGENTS.md',
    '/code/shop/CLAUDE.md',
    'skills',
    'environment',
    'tools',
  ]);
});

test('the digest is that of the text, in UTF-8', () => {
  const { text = '', digest } = systemPrompt({ ...parts, manifest: 'Bäume 🌳' });
  expect(digest).toBe(createHash('sha256').update(text, 'utf8').digest('hex'));
});

test('instructions alone are sent byte for byte; empty ones are not sent', () => {
  fc.assert(
    fc.property(fc.string(), (manifest) => {
      expect(systemPrompt({ manifest, project: [], skills: [], tools: [] }).text).toBe(manifest);
    }),
  );
  expect(systemPrompt({})).toEqual({ text: undefined, digest: undefined, sources: [] });
});

test('files, skills and tools in another order give the same digest', () => {
  const shuffled = <T>(items: readonly T[]) => fc.shuffledSubarray([...items], { minLength: items.length });
  const { digest } = systemPrompt(parts);
  fc.assert(
    fc.property(
      shuffled(parts.project),
      shuffled(parts.skills),
      shuffled(parts.tools),
      (project, skills, tools) => {
        expect(systemPrompt({ ...parts, project, skills, tools }).digest).toBe(digest);
      },
    ),
  );
});

test('any change of any part changes the digest', () => {
  const changed = (value: unknown): unknown[] => {
    if (typeof value === 'string') return [`${value} `, `${value}\n`, value.toUpperCase(), value.slice(1)];
    if (Array.isArray(value))
      return value.flatMap((item, i) => [
        value.toSpliced(i, 1),
        ...changed(item).map((other) => value.with(i, other)),
      ]);
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([name, field]) => {
      // The prompt does not contain the place of a file, only its label.
      if (name === 'path') return [];
      return changed(field).map((other) => ({ ...value, [name]: other }));
    });
  };
  const all = [parts, ...changed(parts)] as PromptParts[];
  expect(all.length).toBeGreaterThan(80);
  // A change without effect, and the common part of two changes, count once.
  const told = new Set(all.map((one) => JSON.stringify(one)));
  expect(new Set(all.map((one) => systemPrompt(one).digest)).size).toBe(told.size);
});
