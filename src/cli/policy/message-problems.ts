// messageExpressions that give no message, which the engine logs: denials have the written message then.
import type { PolicyLogEntry } from '../../engine/capabilities/index.ts';
import { fieldPathOf } from '../field-path.ts';
import type { FilePolicy } from './file-policy.ts';
import { subjectOf } from './policy-findings.ts';
import type { PolicyWarning } from './policy-warning.ts';

const PROBLEM = /^(?:\w+\/[^:]+: )?((?:spec\.)?validations\[\d+\]\.messageExpression): (.+)$/s;

/** Whether a line of a log is about a messageExpression. */
export function isMessageProblem({ message }: PolicyLogEntry): boolean {
  return PROBLEM.test(message);
}

/** The warning about a messageExpression of a policy, if a line of its log is about one. */
export function messageWarning(
  { placed = [], placeOf, definition, manifest }: FilePolicy,
  { message }: PolicyLogEntry,
): PolicyWarning | undefined {
  const [, field, problem = ''] = PROBLEM.exec(message) ?? [];
  if (field === undefined) {
    return undefined;
  }
  const [first] = placed;
  const path = first === undefined ? `settings.${field}` : manifest === undefined ? field : `spec.settings.${field}`;
  const place = (first?.placeOf ?? placeOf)?.(fieldPathOf(path));
  return {
    rule: 'message-expression',
    policy: first === undefined ? definition.id : subjectOf(first.object),
    field: path,
    message: `gives no message, and denials have another one: ${problem}`,
    ...(place === undefined ? {} : { place }),
  };
}
