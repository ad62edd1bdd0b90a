import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { ChatAnswer, ChatRequest } from './provider.ts';
import { sized } from './size.ts';

/**
 * Ways to delegate, each in its own home: tasks given by a program; a model that waits for its children; one that does
 * not, and is started by each result; a parent that another process runs meanwhile; children that wait for approvals,
 * which the parent is given.
 */
export const scenes = ['program', 'call', 'notice', 'elsewhere', 'waits'] as const;

export type Scene = (typeof scenes)[number];

/** All tasks of some scenes; on a push some, which pass the same points of a delegation; in full one of each kind. */
const ofProgram = ['p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8'];
const ofNotice = ['n1', 'n2', 'n3'];
const ofWaits = ['a1', 'a2', 'a3'];

/** The tasks of a scene that `main` delegates. */
export const tasksOf: Readonly<Record<Scene, readonly string[]>> = {
  program: sized(['p5', 'p7'], ['p2', 'p4', 'p5', 'p6', 'p7'], ofProgram),
  call: ['c1', 'c2', 'c3', 'c4'],
  notice: sized(['n2', 'n3'], ofNotice, ofNotice),
  elsewhere: ['e1', 'e2', 'e3'],
  waits: sized(['a1', 'a2'], ofWaits, ofWaits),
};

/** JSON Schema of the structured result of these tasks. */
export const formSchema = {
  type: 'object',
  properties: { task: { type: 'string' }, answer: { type: 'number' } },
  required: ['task', 'answer'],
  additionalProperties: false,
} as const;

export const withForm: ReadonlySet<string> = new Set(['p7', 'p8', 'c4']);

/** A task as its child receives it; `home` distinguishes requests of several homes of one server. */
export function taskText(task: string, home: string): string {
  return `Please do task:${task}@${home}.`;
}

/** The first message of `main`. */
export function firstText(scene: Scene, home: string): string {
  return `Begin ${scene}@${home}.`;
}

export const lastText = 'Anything else?';

type Call = { readonly id: string; readonly name: string; readonly arguments: Json };

/** Calls of one answer. The ids of calls that must not be run twice begin with `once-`. */
const once = (...ids: string[]): Call[] =>
  ids.map((id) => ({ id: `once-${id}`, name: 'write', arguments: {} }));
const signed = (id: string): Call => ({ id: `once-${id}`, name: 'sign', arguments: {} });
const often = (id: string): Call => ({ id: `often-${id}`, name: 'read', arguments: {} });
const pause = (id: string): Call => ({ id, name: 'pause', arguments: {} });
const delegate = (id: string, home: string, tasks: readonly string[], more: Json = {}): Call => ({
  id,
  name: 'delegate',
  arguments: {
    tasks: tasks.map((task) => ({
      task: taskText(task, home),
      ...(withForm.has(task) && { output_schema: formSchema }),
    })),
    ...(more as object),
  },
});

/** The calls that the model of a task makes, answer by answer, before it is done. */
function stepsOf(who: string, home: string): readonly (readonly Call[])[] {
  const steps: Readonly<Record<string, readonly (readonly Call[])[]>> = {
    p2: [once('p2a'), once('p2b')],
    p3: [[often('p3')]],
    p4: [once('p4a', 'p4b')],
    p5: [[delegate('d-p5', home, ['p5x', 'p5y'])], once('p5')],
    p5x: [once('p5x')],
    p8: [once('p8')],
    c2: [once('c2')],
    c3: [[delegate('d-c3', home, ['c3x'])]],
    c3x: [[often('c3x')]],
    n2: [once('n2')],
    n3: [[pause('w-n3')]],
    e2: [once('e2')],
    a1: [[signed('a1')]],
    a2: [[delegate('d-a2', home, ['a2x'])]],
    a2x: [[signed('a2x')], [signed('a2y')]],
    a3: [once('a3')],
    call: [[delegate('d-main', home, tasksOf.call), ...once('main')]],
    waits: [[delegate('d-main', home, tasksOf.waits)]],
    notice: [
      [delegate('d-main', home, tasksOf.notice, { background: true, trigger_on_complete: 'notify_parent' })],
    ],
    elsewhere: [[pause('w1')], [pause('w2')], [pause('w3')]],
  };
  return steps[who] ?? [];
}

/** What a request is about: its session, and the last text that its model received. */
interface About {
  readonly home: string;
  /** The task, or the scene for `main`. */
  readonly who: string;
  readonly said: 'task' | 'form' | 'notice' | 'last';
  /** The child that a notice names. */
  readonly child?: string;
}

const told =
  /task:(?<task>\w+)@(?<of>[\w-]+)|Begin (?<scene>\w+)@(?<home>[\w-]+)|(?<form>Return the result of your task now)|Session (?<child>\S+), which you started|(?<last>Anything else\?)/g;

/** Reads it off what users said; what else is in a prompt quotes the same texts. */
export function aboutOf({ messages }: ChatRequest): About {
  let about: About = { home: '', who: '', said: 'task' };
  for (const { role, content } of messages) {
    if (role !== 'user') continue;
    for (const { groups = {} } of textOf(content ?? '').matchAll(told)) {
      const { task, of, scene, home, form, child, last } = groups;
      if (task !== undefined) about = { home: of ?? '', who: task, said: 'task' };
      else if (scene !== undefined) about = { home: home ?? '', who: scene, said: 'task' };
      else if (form !== undefined) about = { ...about, said: 'form' };
      else if (child !== undefined) about = { ...about, said: 'notice', child };
      else if (last !== undefined) about = { ...about, said: 'last' };
    }
  }
  return about;
}

/** The text of the last of several answers, so that it can be counted. */
export const finalText = (who: string): string => `Done with ${who}`;
export const noticeText = (child: string): string => `Heard of ${child}`;
export const thenText = 'Nothing else';

/**
 * What the server answers: it depends on the request alone, so that a run can resume anywhere, but for the number of
 * the request, which each answer contains.
 */
export function answerTo(
  request: ChatRequest,
  { about: { home, who, said, child }, index }: { readonly about: About; readonly index: number },
): ChatAnswer {
  const number = `(answer ${index})`;
  if (said === 'last') return { text: `${thenText} ${number}` };
  if (said === 'notice') return { text: [`${noticeText(child ?? '')} `, number] };
  if (said === 'form') return { text: JSON.stringify({ task: who, answer: index }) };
  const asked = JSON.stringify(request.messages);
  const calls = stepsOf(who, home).find((step) => !step.some(({ id }) => asked.includes(`"${id}"`)));
  if (calls !== undefined) return { text: `Step ${number}`, calls };
  const words = who === 'p6' ? Array.from({ length: 40 }, (_, i) => `word${i} `) : [];
  return { text: [...words, `${finalText(who)} `, number] };
}

function textOf(content: Json): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (isObject(part) && typeof part.text === 'string' ? part.text : '')).join('\n');
}
