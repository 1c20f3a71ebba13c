import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Space } from './data/space.ts';

const SpaceContext = createContext<Space | null>(null);

export const SpaceProvider = SpaceContext.Provider;

/** What the page knows. */
export function useSpace(): Space {
  const space = useContext(SpaceContext);
  if (space === null) throw new ReferenceError('a view was drawn outside of the page');
  return space;
}
