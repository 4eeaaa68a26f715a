import { compareStrings } from '../../go/index.ts';
import type { UnmetDependency } from './unmet-dependencies.ts';

/** The message of a template whose dependencies are not met, in upstream's words. */
export function pendingMessage(
  unmet: readonly Pick<UnmetDependency, 'kind' | 'name'>[],
  ignorePending: boolean,
): string {
  const names = unmet.map(({ kind, name }) => `${kind} ${name}`).toSorted(compareStrings);
  const are = names.length === 1 ? 'is' : 'are';
  const text = `Dependencies were not satisfied: ${names.length} ${are} still pending (${names.join(', ')})`;
  return ignorePending ? `Compliant; ${text} but ignorePending is true` : `Pending; ${text}`;
}

/** The message of a template that cannot be applied. */
export function templateErrorMessage(text: string): string {
  return `NonCompliant; template-error; ${text}`;
}
