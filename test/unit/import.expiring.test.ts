import { execFileSync } from 'node:child_process';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { claudeCode, type TranscriptTool, transcriptTools } from '@tapedeck/runtime/import';
import { standingOf } from '@tapedeck/runtime/internal';
import { expect, test } from 'vitest';
import { memoryDir } from '../support/temp-dir.ts';

test('of a thousand transcripts, only those that are about to be deleted and are not known are opened', async () => {
  using dir = memoryDir();
  const folder = dir.file('.claude/projects/p');
  mkdirSync(folder, { recursive: true });
  const now = Date.parse('2026-06-30');
  for (let i = 0; i < 1_000; i += 1) {
    const file = `${folder}/s${i}.jsonl`;
    writeFileSync(
      file,
      `{"type":"user","uuid":"u","sessionId":"s${i}","message":{"role":"user","content":"Hi"}}\n`,
    );
    const changed = now / 1000 - (i % 100 === 0 ? 29 : 1) * 86_400;
    utimesSync(file, changed, changed);
  }
  const opened = new Set<string>();
  const [tool] = transcriptTools;
  const watched: TranscriptTool = {
    ...(tool as TranscriptTool),
    identify: (records, path) => {
      opened.add(basename(path));
      return tool?.identify(records, path);
    },
  };

  const { transcripts, expiring } = await standingOf(
    { place: { env: {}, home: dir.path }, tools: [watched] },
    now,
  );

  const due = Array.from({ length: 10 }, (_, i) => `s${i * 100}.jsonl`);
  expect(transcripts).toBe(1_000);
  expect([...opened].toSorted()).toEqual(due.toSorted());
  expect(expiring.map(({ file }) => basename(file.path)).toSorted()).toEqual(due.toSorted());
});

test('settings that are a pipe are not read, and the usual number of days counts', () => {
  using dir = memoryDir();
  mkdirSync(dir.file('.claude'));
  execFileSync('mkfifo', [dir.file('.claude/settings.json')]);
  expect(claudeCode.retention?.({ env: {}, home: dir.path })).toMatchObject({
    days: 30,
    fault: expect.any(String),
  });
});

test('the settings of the machine come before those of the user, and the last of their files before the others', () => {
  using dir = memoryDir();
  const place = { env: {}, home: dir.path, managed: dir.file('managed') };
  const write = (path: string, text: string) => {
    mkdirSync(dirname(dir.file(path)), { recursive: true });
    writeFileSync(dir.file(path), text);
    return claudeCode.retention?.(place);
  };
  const own = write('.claude/settings.json', '{"cleanupPeriodDays":90}');
  expect(own).toEqual({ days: 90, file: dir.file('.claude/settings.json') });
  expect(write('managed/managed-settings.json', '{"cleanupPeriodDays":7}')?.days).toBe(7);
  expect(write('managed/managed-settings.d/20.json', '{"cleanupPeriodDays":9}')?.days).toBe(9);
  expect(write('managed/managed-settings.d/10.json', '{"cleanupPeriodDays":8}')?.days).toBe(9);
  expect(write('managed/managed-settings.d/20.json', '{"model":"x"}')?.days).toBe(8);
  expect(write('managed/managed-settings.d/30.json', 'nonsense')).toMatchObject({
    days: 30,
    fault: expect.any(String),
  });
});
