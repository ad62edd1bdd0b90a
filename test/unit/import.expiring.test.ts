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

test('the settings of the projects count where they keep transcripts for less time, and no other ones', () => {
  using dir = memoryDir();
  const projects = [dir.file('a'), dir.file('b'), dir.path];
  const write = (path: string, text: string) => {
    mkdirSync(dirname(dir.file(path)), { recursive: true });
    writeFileSync(dir.file(path), text);
    return claudeCode.retention?.({ env: {}, home: dir.path, managed: dir.file('managed'), projects });
  };
  const days = (count: number) => JSON.stringify({ cleanupPeriodDays: count });
  expect(write('a/.claude/settings.json', days(60))).toEqual({ days: 30 });
  const ofA = { days: 20, file: dir.file('a/.claude/settings.json'), startedIn: dir.file('a') };
  expect(write('a/.claude/settings.json', days(20))).toEqual(ofA);
  expect(write('b/.claude/settings.json', days(10))?.startedIn).toBe(dir.file('b'));
  // That of the project for this user comes first, also where it says more.
  expect(write('b/.claude/settings.local.json', days(90))).toEqual(ofA);
  expect(write('a/.claude/settings.local.json', '{"cleanupPeriodDays":"5"}')).toEqual({ days: 30 });
  expect(write('a/.claude/settings.local.json', days(0))).toMatchObject({
    days: 0,
    startedIn: dir.file('a'),
  });
  expect(write('a/.claude/settings.local.json', '{}')).toEqual(ofA);
  // The home directory may be a project: its settings are those of the user, but for the local ones.
  expect(write('.claude/settings.json', days(15))).toEqual({
    days: 15,
    file: dir.file('.claude/settings.json'),
  });
  expect(write('.claude/settings.local.json', days(14))?.startedIn).toBe(dir.path);
  expect(write('managed/managed-settings.json', days(40))?.days).toBe(40);
});
