import { useEffect, useState } from 'preact/hooks';
import { sentenceOf } from '../data/answer-error.ts';

/**
 * Runs what may fail, and tells what went wrong. That is forgotten when the next attempt begins, or, where `patient`,
 * when one succeeds.
 */
export function useAttempt(patient = false) {
  const [trouble, setTrouble] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    if (!patient) setTrouble(null);
    try {
      await work();
      setTrouble(null);
    } catch (thrown) {
      setTrouble(sentenceOf(thrown));
    }
    setBusy(false);
  };
  return { trouble, busy, attempt };
}

/**
 * Asks at once, whenever `inputs` change, and again and again while the page is looked at. Returns the last answer, and
 * what went wrong since.
 */
export function usePolled<T>(ask: () => Promise<T>, everyMs: number, inputs: readonly unknown[]) {
  const [answer, setAnswer] = useState<T | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  useEffect(() => {
    let wanted = true;
    const askOnce = async (): Promise<void> => {
      try {
        const next = await ask();
        if (!wanted) return;
        setAnswer(next);
        setTrouble(null);
      } catch (thrown) {
        if (wanted) setTrouble(sentenceOf(thrown));
      }
    };
    void askOnce();
    const timer = setInterval(() => document.hidden || void askOnce(), everyMs);
    return () => {
      wanted = false;
      clearInterval(timer);
    };
  }, inputs);
  return { answer, trouble };
}
