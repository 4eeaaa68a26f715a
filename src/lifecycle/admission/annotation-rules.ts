import { errorText, nearestKey } from '../../values/index.ts';
import { tenantModuleProblem } from '../../modules/index.ts';
import { parseSources } from '../../modules/sources/index.ts';
import { ANNOTATIONS, invalid } from '../../resources/index.ts';
import { type AnnotationProblem, parseRolloutAnnotations } from '../../rollout/index.ts';
import { registryMirrors, tenantModuleHosts, tenantModules } from '../policy-servers/module-sources.ts';
import { refreshAnnotationProblems } from '../rollout/refresh-request.ts';
import { webhookAnnotationProblems } from '../webhooks/own-webhook.ts';
import type { Findings } from './findings.ts';
import { SOURCE_HOST, SOURCE_HOST_EXPECTED } from './policy-server-rules.ts';

type Annotations = Readonly<Record<string, string>>;

const { pin, rollbackTo, refresh: _, webhook: __, ...SERVER_ANNOTATIONS } = ANNOTATIONS;
/** The annotations of policies: all except those that only PolicyServers have. */
const {
  takeOver: ___,
  tenantModuleHosts: ____,
  tenantModules: _____,
  registryMirrors: ______,
  ...POLICY_ANNOTATIONS
} = ANNOTATIONS;
const PREFIX = 'portcullis.dev/';

/** A revision number. Fifteen digits are exact in JSON. */
const REVISION = /^[1-9][0-9]{0,14}$/;

/** Checks our annotations of a policy that differ from `before`. */
export function checkPolicyAnnotations(annotations: Annotations, before: Annotations, findings: Findings): void {
  const pinned = textOf(annotations, pin);
  if (pinned !== undefined && pinned !== textOf(before, pin) && !REVISION.test(pinned)) {
    const detail = 'expected the number of a revision, such as "3": `portcullis rollout history` lists them';
    findings.reject('annotation', invalid(fieldOf(pin), pinned, detail));
  }
  const target = textOf(annotations, rollbackTo);
  if (target !== undefined && target !== textOf(before, rollbackTo)) {
    if (target !== 'previous' && !REVISION.test(target)) {
      const detail = 'expected the number of a revision, such as "3", or "previous"';
      findings.reject('annotation', invalid(fieldOf(rollbackTo), target, detail));
    } else if (pinned !== undefined) {
      const text = `the spec is rolled back, but revision ${pinned} keeps serving until the annotation ${pin} is removed`;
      findings.warn('pin-outlasts-rollback', fieldOf(rollbackTo), text);
    }
  }
  checkRollout(annotations, before, findings);
  rejectProblems(refreshAnnotationProblems(annotations), annotations, before, findings);
  rejectProblems(webhookAnnotationProblems(annotations), annotations, before, findings);
  warnOfUnknown(annotations, before, Object.values(POLICY_ANNOTATIONS), findings);
}

/** Checks our annotations of a PolicyServer that differ from `before`. */
export function checkServerAnnotations(annotations: Annotations, before: Annotations, findings: Findings): void {
  checkRollout(annotations, before, findings);
  const key = ANNOTATIONS.tenantModuleHosts;
  const wrong = tenantModuleHosts(annotations).find((host) => !SOURCE_HOST.test(host));
  if (wrong !== undefined && textOf(annotations, key) !== textOf(before, key)) {
    findings.reject('source-host', invalid(fieldOf(key), wrong, SOURCE_HOST_EXPECTED));
  }
  checkTenantModules(annotations, before, findings);
  checkMirrors(annotations, before, findings);
  warnOfUnknown(annotations, before, Object.values(SERVER_ANNOTATIONS), findings);
}

function checkTenantModules(annotations: Annotations, before: Annotations, findings: Findings): void {
  const key = ANNOTATIONS.tenantModules;
  const wrong = tenantModules({ metadata: { annotations } }).find((entry) => tenantModuleProblem(entry) !== undefined);
  if (wrong !== undefined && textOf(annotations, key) !== textOf(before, key)) {
    findings.reject(
      'annotation',
      invalid(fieldOf(key), wrong, `${tenantModuleProblem(wrong)}; or builtin, for no others`),
    );
  }
}

function checkMirrors(annotations: Annotations, before: Annotations, findings: Findings): void {
  const key = ANNOTATIONS.registryMirrors;
  const problem = mirrorProblem(annotations);
  if (problem !== undefined && textOf(annotations, key) !== textOf(before, key)) {
    findings.reject('source-host', invalid(fieldOf(key), textOf(annotations, key) ?? '', problem));
  }
}

/** What is wrong with the mirrors of registries, which policy servers read from `sources.yml`. */
function mirrorProblem(annotations: Annotations): string | undefined {
  const mirrors = registryMirrors(annotations);
  if (mirrors.some(([, urls]) => urls.some((url) => !/^https?:\/\//i.test(url)))) {
    return 'expected HOST=URL, separated by commas, such as "ghcr.io=https://mirror.example.com/ghcr.io"';
  }
  try {
    parseSources(JSON.stringify({ mirrors: Object.fromEntries(mirrors) as object }), ANNOTATIONS.registryMirrors);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

function checkRollout(annotations: Annotations, before: Annotations, findings: Findings): void {
  rejectProblems(parseRolloutAnnotations(annotations).problems, annotations, before, findings);
}

function rejectProblems(
  problems: readonly AnnotationProblem[],
  annotations: Annotations,
  before: Annotations,
  findings: Findings,
): void {
  for (const { annotation, message } of problems) {
    const value = textOf(annotations, annotation);
    if (value !== textOf(before, annotation)) {
      findings.reject('annotation', invalid(fieldOf(annotation), value ?? '', message));
    }
  }
}

/** Warns of unknown annotations under our prefix that resemble a known one. */
function warnOfUnknown(
  annotations: Annotations,
  before: Annotations,
  known: readonly string[],
  findings: Findings,
): void {
  for (const key of Object.keys(annotations)) {
    if (!key.startsWith(PREFIX) || known.includes(key) || Object.hasOwn(before, key)) {
      continue;
    }
    const nearest = nearestKey(
      key.slice(PREFIX.length),
      known.map((one) => one.slice(PREFIX.length)),
    );
    if (nearest !== undefined) {
      findings.warn('annotation-unknown', fieldOf(key), `the annotation is unknown: did you mean ${PREFIX}${nearest}?`);
    }
  }
}

function fieldOf(annotation: string): string {
  return `metadata.annotations[${annotation}]`;
}

function textOf(annotations: Annotations, key: string): string | undefined {
  return Object.hasOwn(annotations, key) ? annotations[key] : undefined;
}
