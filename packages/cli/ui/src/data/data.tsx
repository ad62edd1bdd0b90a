import { createContext } from 'preact';
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { HomeInfo, PageEvent } from '../../../src/page/data.ts';
import type { Asks } from './asks.ts';
import { Calm } from './calm.ts';
import { NotAnswered } from './not-answered.ts';

/** Tells a part of the page what changes. Returns how it stops. */
type Listen = (listener: (event: PageEvent) => void) => () => void;

/** What all of the page reads. */
export interface Source {
  readonly data: Asks;
  readonly home: HomeInfo;
  readonly listen: Listen;
}

/** The source of this page. It is there before the first part is drawn. */
export const SourceOf = createContext<Source | undefined>(undefined);

/** The source of this page, for a part of it. */
export function useSource(): Source {
  const source = useContext(SourceOf);
  if (source === undefined) throw new Error('a part of the page is drawn without its data');
  return source;
}

/** An answer on its way, or here, or refused. Where it is asked again it stays until the new one is here. */
export interface Asked<T> {
  readonly value?: T;
  readonly error?: unknown;
  readonly again: () => void;
}

/** When an answer is asked again. */
interface AskedAgain {
  /** Of a home that changes: after each change, unless it says otherwise. */
  readonly isLive?: boolean;
  /** How long changes are collected at least, in milliseconds. */
  readonly pause?: number;
}

/** Asks once for each `key`, which stands for all that the question depends on, and again when something changed. */
export function useAsked<T>(
  question: (data: Asks) => Promise<T>,
  key: string,
  { isLive = true, pause }: AskedAgain = {},
): Asked<T> {
  const { data } = useSource();
  const [answer, setAnswer] = useState<{
    readonly key: string;
    readonly value?: T;
    readonly error?: unknown;
  }>({ key });
  const now = useRef({ question, key });
  now.current = { question, key };
  const rounds = useRef({ asked: 0, answered: 0 });
  const ask = async () => {
    const { key: of } = now.current;
    rounds.current.asked += 1;
    const round = rounds.current.asked;
    const isNews = () => {
      // An answer can be slower than a later one.
      if (now.current.key !== of || round < rounds.current.answered) return false;
      rounds.current.answered = round;
      return true;
    };
    try {
      const value = await now.current.question(data);
      if (isNews()) setAnswer({ key: of, value });
    } catch (error) {
      if (isNews()) setAnswer((was) => ({ ...(was.key === of && !isGone(error) && was), key: of, error }));
    }
  };
  useEffect(() => void ask(), [data, key]);
  const again = useCalmly(ask, pause);
  useChanges(() => isLive && again());
  useKeptFocus();
  return answer.key === key ? { ...answer, again: () => void ask() } : { again: () => void ask() };
}

/** Whether what was asked about was deleted or erased: what was read of it before is not shown any longer. */
function isGone(error: unknown): boolean {
  return error instanceof NotAnswered && error.code === 'CLI_NOT_FOUND';
}

/** Keeps the focus on an element that is drawn at another place: a browser takes it from what is moved. */
function useKeptFocus(): void {
  const { activeElement: had } = document;
  useLayoutEffect(() => {
    const isLost = document.activeElement === document.body && had !== document.body;
    if (isLost && had instanceof HTMLElement && had.isConnected) had.focus({ preventScroll: true });
  });
}

/** Calls `react` with each change, while the part is drawn. */
export function useChanges(react: (event: PageEvent) => void): void {
  const { listen } = useSource();
  const last = useRef(react);
  last.current = react;
  useEffect(() => listen((event) => last.current(event)), [listen]);
}

/** Returns a function that has `act` called for a change: see `Calm`. */
export function useCalmly(act: () => unknown, pause?: number): () => void {
  const last = useRef(act);
  last.current = act;
  const calm = useMemo(() => new Calm(() => last.current(), pause), [pause]);
  useEffect(() => () => calm.stop(), [calm]);
  return () => calm.changed();
}
