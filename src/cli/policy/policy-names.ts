// Names of policies on command lines: `cap/pinned-images`, or its last parts alone.
import { nearestKey } from '../../values/index.ts';
import { CliError } from '../errors.ts';

export function isPolicyNamed(policy: string, name: string): boolean {
  return policy === name || policy.endsWith(`/${name}`);
}

/** The error for the name of no policy: it names the one that is meant, or all. */
export function unknownPolicy(name: string, known: readonly string[]): CliError {
  const nearest = nearestKey(
    name,
    known.flatMap((policy) => [policy, policy.slice(policy.lastIndexOf('/') + 1)]),
  );
  const all = known.length === 0 ? 'There are none.' : `There are ${known.join(', ')}.`;
  return new CliError(`there is no policy ${JSON.stringify(name)}`, {
    hint: nearest === undefined ? all : `Did you mean ${nearest}?`,
  });
}
