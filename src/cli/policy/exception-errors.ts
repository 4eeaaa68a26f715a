import { expiryOf, POLICY_EXCEPTIONS, type PolicyException } from '../../resources/index.ts';
import { validatedManifest } from './own-policy.ts';
import type { PlacedManifest } from './placed-manifests.ts';
import { ownFindings } from './policy-findings.ts';

/** What is wrong with an exception, with places. That it has ended is not: it excepts nothing any more. @throws CliError */
export function exceptionErrors(placed: PlacedManifest): readonly string[] {
  const { spec } = validatedManifest(placed, POLICY_EXCEPTIONS) as PolicyException;
  const hasEnded = (expiryOf(spec.expiresAt) ?? Infinity) <= Date.now();
  const { errors } = ownFindings(placed, POLICY_EXCEPTIONS, []);
  return errors.filter(({ field }) => !hasEnded || field !== 'spec.expiresAt').map(({ text }) => text);
}
