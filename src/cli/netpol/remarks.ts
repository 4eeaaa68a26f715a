// What needs attention in results, for people: one row for each refusal, verdict and warning.
import { oneLine } from '../table.ts';
import type { CheckResult } from './check-policies.ts';

/** A row of a table. Texts are on one line. */
export interface Remark {
  readonly policy: string;
  /** `policies/web.yaml:12`; empty for what is in no file. */
  readonly place: string;
  /** Of a verdict; `Refused` by API servers; empty for mistakes whatever the provider. */
  readonly accepted: string;
  readonly effect: string;
  readonly message: string;
}

export function remarksOf({ policy, refusals, mistakes, verdicts, placeOf }: CheckResult): readonly Remark[] {
  const remark = (accepted: string, message: string, path: string | undefined, effect = ''): Remark => ({
    policy: oneLine(policy),
    place: placeText(placeOf?.(path ?? '')),
    accepted,
    effect,
    message: oneLine(message),
  });
  return [
    ...refusals.map(({ message, path }) => remark('Refused', message, path)),
    ...mistakes.map(({ message, paths }) => remark('', `warning: this policy ${message}`, paths[0])),
    ...verdicts.flatMap(({ accepted, message, effect, path, warnings }) => [
      ...(accepted === 'True' ? [] : [remark(accepted, message, path, effect)]),
      ...warnings.map((warning) => remark(accepted, `warning: ${warning.message}`, warning.paths[0])),
    ]),
  ];
}

function placeText(place: { readonly file: string; readonly line: number } | undefined): string {
  return place === undefined ? '' : oneLine(`${place.file}:${place.line}`);
}
