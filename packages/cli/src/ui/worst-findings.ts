import { Worker } from 'node:worker_threads';
import type { Checked } from '../page/page.ts';

/** What the thread does. It is no file of its own: a bundle has none for threads. */
const reading = `
const { parentPort, workerData: { bytes, most } } = require('node:worker_threads');
const { sessions, entries, sections } = JSON.parse(new TextDecoder().decode(bytes));
const all = Object.entries(sections).flatMap(([section, { findings }]) =>
  findings.map((finding) => ({ section, finding })));
const worst = ['damage', 'incomplete', 'note']
  .flatMap((weight) => all.filter(({ finding }) => finding.weight === weight)).slice(0, most);
const findingsOf = (name) => worst.flatMap(({ section, finding }) => (section === name ? [finding] : []));
parentPort.postMessage({
  sessions, entries, total: all.length,
  sections: Object.fromEntries(Object.keys(sections).map((name) => [name, { findings: findingsOf(name) }])),
});`;

/**
 * Reads what `tape check --json` printed, and keeps the worst findings: in a thread of its own, as that can be much, and all
 * other answers would wait.
 */
export async function worstFindings(printed: Buffer, most: number): Promise<Checked> {
  const { promise, resolve, reject } = Promise.withResolvers<Checked>();
  const bytes = new Uint8Array(printed);
  const thread = new Worker(reading, {
    eval: true,
    workerData: { bytes, most },
    transferList: [bytes.buffer],
  });
  thread.once('message', resolve).once('error', reject);
  thread.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)));
  return await promise;
}
