import { parsePolicies, type PolicyDefinition } from '../../engine/index.ts';
import { CliError } from '../errors.ts';

/**
 * A policy of a policies file. `file` is its name for messages.
 * @throws CliError when the file has no such policy, or it is invalid; EngineError when the file is unusable
 */
export function findPolicy(text: string, file: string, id: string): PolicyDefinition {
  const { policies, problems } = parsePolicies(text, file);
  const faults = problems.filter((problem) => problem.id === id);
  if (faults.length > 0) {
    throw new CliError(
      faults.map(({ line, column, field, message }) => `${file}:${line}:${column} ${field}: ${message}`).join('\n'),
    );
  }
  const found = policies.find((policy) => policy.id === id);
  if (found === undefined) {
    const ids = policies.map((policy) => policy.id).join(', ');
    throw new CliError(`${file} has no policy ${JSON.stringify(id)}`, { hint: `It has ${ids || 'none'}.` });
  }
  return found;
}
