// Reasons are an interface: the tables of docs/lifecycle.md must list all of them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { PolicyReason } from '../../evaluation/index.ts';
import { DEFAULT_ROLLOUT_SETTINGS, planRollout, REASONS } from '../../rollout/index.ts';
import type { AdmissionRolloutView } from './admission-rollout-view.ts';
import { both, failed, first, PHASE_CASES } from './testing/phase-cases.ts';
import { revision, view } from './testing/rollout-scene.ts';

/** All reasons of PolicyReason: a missing or unknown one is a type error. */
const POLICY_REASONS: Readonly<Record<PolicyReason, true>> = {
  Loading: true,
  Serving: true,
  ServingFromCache: true,
  InvalidDefinition: true,
  FetchFailed: true,
  Unauthorized: true,
  AccessDenied: true,
  ModuleNotFound: true,
  RateLimited: true,
  SourceFailed: true,
  InvalidManifest: true,
  UnsupportedMediaType: true,
  SizeMismatch: true,
  DigestMismatch: true,
  SignatureMissing: true,
  SignatureInvalid: true,
  TrustRootUnavailable: true,
  NotVerifiable: true,
  InvalidModule: true,
  UnsupportedVersion: true,
  CapabilityNotGranted: true,
  MemoryExceeded: true,
  Quarantined: true,
  InvalidSettings: true,
  SettingsCheckFailed: true,
  KindNotServed: true,
  KindNotReadable: true,
  InvalidParameters: true,
  PoliciesFileUnusable: true,
  ActivationFailed: true,
  ServingFromRecord: true,
  RevisionFailed: true,
};

const OWN: ReadonlySet<string> = new Set(Object.values(REASONS));

/** The rows of the tables of reasons: reason and second cell. */
function documented(): Map<string, string> {
  const page = readFileSync(new URL('../../../docs/lifecycle.md', import.meta.url), 'utf8');
  const [, section = ''] = page.split('\n### Reasons\n');
  const [reasons = ''] = section.split('\n## ');
  return new Map(
    [...reasons.matchAll(/^\| `(\w+)` \| ([^|]*) \|/gm)].map(([, reason = '', next = '']) => [reason, next]),
  );
}

/** The phases of each reason in the cases of the tests. */
function reached(): Map<string, Set<string>> {
  const phases = new Map<string, Set<string>>();
  for (const { reason, phase } of PHASE_CASES) {
    phases.set(reason, (phases.get(reason) ?? new Set()).add(phase));
  }
  return phases;
}

describe('reasons', () => {
  it('are listed in docs/lifecycle.md with their phases', () => {
    const page = documented();
    const phases = reached();
    const listed = (texts: Iterable<string> = ['(revisions)']): string => [...texts].toSorted().join(', ');
    assert.deepEqual(
      Object.fromEntries([...OWN].map((reason) => [reason, listed((page.get(reason) ?? 'not there').split(', '))])),
      Object.fromEntries([...OWN].map((reason) => [reason, listed(phases.get(reason))])),
    );
  });

  it('in docs/lifecycle.md exist', () => {
    const page = [...documented().keys()];
    assert.ok(page.length > OWN.size, 'no table of reasons of replicas');
    assert.deepEqual(
      page.filter((reason) => !OWN.has(reason) && !Object.hasOwn(POLICY_REASONS, reason)),
      [],
    );
  });

  it('of revisions come from the plan', () => {
    const reject = { settings: { ...DEFAULT_ROLLOUT_SETTINGS, degraded: 'Reject' } } as const;
    for (const [reason, number, scene] of [
      [REASONS.superseded, 2, view([first, revision(2, 'Validated'), revision(3, 'Candidate')], both)],
      [REASONS.pinned, 2, view([first, revision(2, 'Validated')], both, { pin: 1 })],
      [REASONS.replaced, 1, view([first, revision(2, 'Serving')], both)],
      [REASONS.degradedRejected, 1, view([first, failed(2)], both, reject)],
    ] as const satisfies readonly (readonly [string, number, AdmissionRolloutView])[]) {
      const { steps } = planRollout(scene);
      const given = steps.flatMap((step) => (step.type === 'transition' ? [[step.revision, step.reason]] : []));
      assert.deepEqual(given[0], [number, reason]);
    }
  });
});
