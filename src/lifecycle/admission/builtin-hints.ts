// Hints that a builtin module does what a module of Kubewarden does. They are warnings: the module runs as it is.
import type { BuiltinSettings } from '../../engine/index.ts';
import { isJsonObject } from '../../resources/index.ts';
import type { Findings } from './findings.ts';
import type { SpecModule } from './rights-rules.ts';

/** A module of Kubewarden in its registry, or in a copy of it. */
const KUBEWARDEN_MODULE =
  /^(?:(?:registry|oci):\/\/)?[^/\s:]+(?::\d+)?\/(?:.*\/)?kubewarden\/policies\/([a-z-]+)(?:[:@].*)?$/i;

/** Modules whose rule is part of a level of the Pod Security Standards, unless their settings allow more. */
const POD_SECURITY_LEVELS: ReadonlyMap<string, 'baseline' | 'restricted'> = new Map([
  ['pod-privileged', 'baseline'],
  ['host-namespaces-psp', 'baseline'],
  ['allow-privilege-escalation-psp', 'restricted'],
]);

/** Warns when a builtin module takes the settings of `cel-policy`, or its Pod Security Standards include the policy. */
export function hintAtBuiltin(
  use: SpecModule,
  isNamespaced: boolean,
  builtins: BuiltinSettings,
  findings: Findings,
): void {
  const name = KUBEWARDEN_MODULE.exec(use.module)?.[1]?.toLowerCase();
  const level = name === undefined ? undefined : POD_SECURITY_LEVELS.get(name);
  if (name === 'cel-policy' && takesSettings(use, isNamespaced, builtins)) {
    hint(
      use,
      'builtin:cel takes these settings as they are, and is not downloaded: write module: builtin:cel',
      findings,
    );
  } else if (level !== undefined && use.mutating !== true && !allowsMore(use.settings)) {
    hint(
      use,
      `the Pod Security Standards, which include this rule, are builtin: module: builtin:pod-security, settings: {enforce: ${level}}`,
      findings,
    );
  }
}

/** False for Kubewarden's own CEL functions. Only policies of the cluster may have what some settings need. */
function takesSettings({ settings }: SpecModule, isNamespaced: boolean, builtins: BuiltinSettings): boolean {
  const { problems, needs } = builtins.check('cel', settings ?? {});
  return problems.length === 0 && (needs.length === 0 || !isNamespaced);
}

/** Settings of these modules list exceptions. */
function allowsMore(settings: unknown): boolean {
  return settings !== undefined && settings !== null && !(isJsonObject(settings) && !hasException(settings));
}

function hasException(settings: Readonly<Record<string, unknown>>): boolean {
  return Object.values(settings).some((value) => value !== false);
}

function hint({ field }: SpecModule, text: string, findings: Findings): void {
  findings.warn('builtin-module', `${field}.module`, text);
}
