import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { HomeInfo, PageData, PageEvent } from '../../../src/page/data.ts';

/** Tells a part of the page what changes. Returns how it stops. */
type Listen = (listener: (event: PageEvent) => void) => () => void;

/** What all of the page reads. */
export interface Source {
  readonly data: PageData;
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

/** Asks once for each `key`, which stands for all that the question depends on. */
export function useAsked<T>(question: (data: PageData) => Promise<T>, key: string): Asked<T> {
  const { data } = useSource();
  const [answer, setAnswer] = useState<{
    readonly key: string;
    readonly value?: T;
    readonly error?: unknown;
  }>({ key });
  const [round, setRound] = useState(0);
  const last = useRef(question);
  last.current = question;
  useEffect(() => {
    let isCurrent = true;
    last.current(data).then(
      (value) => isCurrent && setAnswer({ key, value }),
      (error: unknown) => isCurrent && setAnswer({ key, error }),
    );
    return () => {
      isCurrent = false;
    };
  }, [data, key, round]);
  const again = () => setRound((n) => n + 1);
  return answer.key === key ? { ...answer, again } : { again };
}

/** Calls `react` with each change, while the part is drawn. */
export function useChanges(react: (event: PageEvent) => void): void {
  const { listen } = useSource();
  const last = useRef(react);
  last.current = react;
  useEffect(() => listen((event) => last.current(event)), [listen]);
}

/** How long changes are collected that have a list loaded anew, in milliseconds. */
const pause = 400;

/** Calls `act` for a change, at once after a pause, else when it is over. */
export function useCalmly(act: () => void): () => void {
  const state = useRef<{ timer?: ReturnType<typeof setTimeout>; isDue: boolean }>({ isDue: false });
  const last = useRef(act);
  last.current = act;
  useEffect(() => () => clearTimeout(state.current.timer), []);
  return () => {
    const { current } = state;
    if (current.timer !== undefined) {
      current.isDue = true;
      return;
    }
    const run = () => {
      current.isDue = false;
      last.current();
      current.timer = setTimeout(() => {
        delete current.timer;
        if (current.isDue) run();
      }, pause);
    };
    run();
  };
}
