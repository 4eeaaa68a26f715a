// Builds of a guest as revisions of one policy: on a policy server with the memory of the chart, which a controller updates
// and rolls back.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { TestServer as ModuleServer } from '../../../src/modules/testing/test-server.ts';
import { ANNOTATIONS, keyOf, type KubernetesObject, policyId } from '../../../src/resources/index.ts';
import { kind, type Policy, PolicyLab } from '../../lifecycle/policy-lab.ts';
import { review, type ReviewResponse } from '../../server/harness.ts';
import { guestFolder } from './compilers.ts';
import type { CorpusGuest } from './guests.ts';

const MIB = 2 ** 20;
/** Three eighths of the 1 GiB that the chart gives a policy server. */
const POLICY_MEMORY = 384 * MIB;
const NAMESPACE_OWNERS = { shop: 'team-checkout', scratch: undefined };

/** What happened to the revisions of a guest. */
export interface RolloutResult {
  /** Memory that the policy server counts for its policies after each revision. MiB. */
  readonly memory: readonly number[];
  /** Why a revision was not served or did not decide as it should; undefined when all were. */
  readonly failure?: string;
}

interface Case {
  readonly object: KubernetesObject;
  readonly namespace?: string;
  readonly expect: { readonly allowed?: boolean; readonly patch?: unknown };
}

/** A custom section: the same code with another digest. */
const OTHER_VERSION = Uint8Array.of(0, 2, 1, 0x76);

/** Serves one build after the other, then rolls back to the one before the last. A build alone is updated to itself. */
export async function rollOut(
  guest: CorpusGuest,
  builds: readonly string[],
  neighbours: readonly (readonly [guest: CorpusGuest, build: string])[] = [],
): Promise<RolloutResult> {
  const read =
    (file: string): (() => Uint8Array) =>
    () =>
      readFileSync(file);
  const versions = builds.map(read);
  if (builds.length === 1) {
    versions.push(...builds.map((file) => () => Buffer.concat([readFileSync(file), OTHER_VERSION])));
  }
  const modules = [...versions, ...neighbours.map(([, build]) => read(build))];
  await using source = await ModuleServer.start((request, response) => {
    const index = Number(/\d+/.exec(request.url ?? '')?.[0]);
    response.end(modules[index]?.());
  });
  const { maxModuleMebibytes, memory: times = 1 } = guest.allowed ?? {};
  await using lab = await PolicyLab.start({
    policyMemoryBytes: POLICY_MEMORY * times,
    ...(maxModuleMebibytes === undefined ? {} : { maxModuleBytes: maxModuleMebibytes * MIB }),
  });
  const memory: number[] = [];
  try {
    for (const [name, owner] of Object.entries(NAMESPACE_OWNERS)) {
      await lab.create({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, labels: owner === undefined ? {} : { owner } },
      });
    }
    for (const [index, [other]] of neighbours.entries()) {
      const url = `${source.origin}/${versions.length + index}.wasm`;
      await serves(lab, other, manifestOf(other, `neighbour-${index}`, url));
    }
    const policy = manifestOf(guest, guest.name, `${source.origin}/0.wasm`);
    await serves(lab, guest, policy);
    memory.push(await policyMemory(lab));
    const type = kind<Policy>(policy.apiVersion, policy.kind);
    for (const index of versions.keys().drop(1)) {
      await lab.merge(type, keyOf(policy), { spec: { module: `${source.origin}/${index}.wasm` } });
      await decides(lab, guest, policy);
      memory.push(await policyMemory(lab));
    }
    await lab.merge(type, keyOf(policy), { metadata: { annotations: { [ANNOTATIONS.rollbackTo]: 'previous' } } });
    await lab.sees(type, keyOf(policy), (now) => now?.metadata.annotations?.[ANNOTATIONS.rollbackTo] === undefined);
    await decides(lab, guest, policy);
    return { memory };
  } catch (error) {
    return { memory, failure: error instanceof Error ? error.message : String(error) };
  }
}

/** The guest's manifest, which enforces in all namespaces. */
function manifestOf(guest: CorpusGuest, name: string, module: string): KubernetesObject {
  const manifest = load(readFileSync(join(guestFolder(guest.folder), 'policy.yaml'), 'utf8')) as KubernetesObject & {
    readonly spec: object;
  };
  const { spec } = manifest;
  return {
    ...manifest,
    metadata: { name },
    spec: { ...spec, module, mode: 'protect', namespaceSelector: {} },
  };
}

async function serves(lab: PolicyLab, guest: CorpusGuest, policy: KubernetesObject): Promise<void> {
  await lab.create(policy);
  await decides(lab, guest, policy);
}

/** Waits until the policy's newest revision is active, and asks it. */
async function decides(lab: PolicyLab, guest: CorpusGuest, policy: KubernetesObject): Promise<void> {
  await lab.reaches(policy, 'Active');
  const { object, namespace = 'shop', expect } = telltaleCase(guest);
  const answer: ReviewResponse = await lab.server.review(policyId(policy), review({ object, namespace }));
  assert.equal(answer.allowed, expect.allowed, JSON.stringify(answer));
  assert.equal(answer.patch !== undefined, expect.patch !== undefined, JSON.stringify(answer));
}

/** The first case that a policy which admits everything would fail. */
function telltaleCase(guest: CorpusGuest): Case {
  const { cases } = load(readFileSync(join(guestFolder(guest.folder), 'portcullis-test.yml'), 'utf8')) as {
    cases: readonly Case[];
  };
  const found = cases.find(({ expect }) => expect.allowed === false || expect.patch !== undefined);
  assert.ok(found, `${guest.name} has no case with a rejection or a patch`);
  return found;
}

async function policyMemory(lab: PolicyLab): Promise<number> {
  const response = await fetch(`${lab.server.addresses.operations}/metrics`);
  const text = await response.text();
  const bytes = Number(/^portcullis_policy_memory_bytes\{owner="cluster"\} (\S+)$/m.exec(text)?.[1]);
  return Math.round(bytes / MIB);
}
