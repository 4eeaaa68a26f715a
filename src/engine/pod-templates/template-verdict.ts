// Verdicts on workloads, from those on the pods of their templates.
import type { PodTemplatesAction } from '../../resources/index.ts';
import { applyPatch } from '../verdict/apply-patch.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonValue } from '../values/json-text.ts';
import type { Observation } from '../verdict/observation.ts';
import { allowed, guestFailed, patched } from '../verdict/verdict.ts';
import type { Verdict } from '../verdict/verdict.ts';
import { type PodTemplate, withPod } from './pod-template.ts';

/**
 * The verdict of a policy on a workload, by its verdict on the pod. A patch is still one of the pod, see {@link
 * withTemplatePatch}; with `Warn`, there is none.
 */
export function templateVerdict(
  verdict: Verdict,
  { path }: Pick<PodTemplate, 'path'>,
  action: PodTemplatesAction,
): Verdict {
  const place = `in the pod template (${path.join('.')})`;
  const texts = (verdict.warnings ?? []).map((warning) => `${place}: ${warning}`);
  const message = [place, ...(verdict.message ? [verdict.message] : [])].join(': ');
  if (action === 'Warn') {
    const warnings = verdict.allowed ? texts : [...texts, `pods would be rejected, ${message}`];
    return { ...allowed(listOrNull(warnings)), auditAnnotations: verdict.auditAnnotations };
  }
  return { ...verdict, ...(verdict.allowed ? {} : { message }), warnings: listOrNull(texts) };
}

/** The path of the template in a message of {@link templateVerdict}, and what the message says of the pod. */
export function templateInMessage(message: string): { readonly path: string; readonly text: string } | undefined {
  const [, path, text] = /\bin the pod template \(((?:\w+\.)*\w+)\): (.*)$/s.exec(message) ?? [];
  return path === undefined || text === undefined ? undefined : { path, text };
}

/** A policy as observations name it. With `Warn`, its verdicts on templates have no effect, as in monitor mode. */
export function inTemplate(
  { id, mode }: Pick<Observation, 'mode'> & { readonly id: string },
  action: PodTemplatesAction | undefined,
): { readonly id: string; readonly mode: Observation['mode'] } {
  return { id, mode: action === 'Warn' ? 'monitor' : mode };
}

function listOrNull(texts: readonly string[]): readonly string[] | null {
  return texts.length === 0 ? null : texts;
}

/** A verdict with a patch of a pod, with the patch of the workload in its place. */
export function withTemplatePatch(verdict: Verdict, template: PodTemplate, mutated?: JsonValue): Verdict {
  const { patch, ...rest } = verdict;
  const { object } = template.pod;
  if (patch === undefined || !isJsonObject(object)) {
    return verdict;
  }
  const pod = mutated ?? applyPatch(patch, object);
  return isJsonObject(pod)
    ? patched(rest, template.workload, withPod(template, pod))
    : guestFailed('the policy made the object something that is not an object');
}
