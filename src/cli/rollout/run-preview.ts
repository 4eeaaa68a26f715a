// Runs a preview: reads the versions and the objects, and prints what changes.
import { type Coverage, exceptionsOfCluster } from '../../audit/index.ts';
import {
  type Preview,
  previewCluster,
  type RecordedRequest,
  previewObjects,
  SeparateHosts,
} from '../../audit/preview/index.ts';
import type { JsonObject } from '../../engine/index.ts';
import type { EvaluationHost } from '../../evaluation/index.ts';
import type { ExceptionTerms } from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';
import { auditHost, type HostFlags } from '../audit/audit-host.ts';
import { INSTALLATION } from '../audit/audit-policies.ts';
import { ProgressText } from '../audit/audit-progress.ts';
import { type AuditedFiles, objectsOfFiles } from '../audit/given-objects.ts';
import { connect, type Connected } from '../cluster/cluster-flags.ts';
import { exceptionsAmong } from '../policy/exceptions-among.ts';
import { Progress } from '../progress.ts';
import { type PreviewedVersions, previewedVersions, type VersionFlags } from './previewed-versions.ts';
import { installationOfCluster } from './preview/installation-of-cluster.ts';
import { exitCodeOfPreview, type PreviewFailOn } from './preview/preview-report.ts';
import { type PREVIEW_OUTPUTS, previewText } from './preview/preview-text.ts';
import { recordedRequests } from './preview/recorded-requests.ts';
import { REVISION_NUMBER } from './rollout-target.ts';

export interface PreviewFlags extends HostFlags, VersionFlags {
  readonly objects?: readonly string[];
  readonly requests?: readonly string[];
  readonly includeSecrets?: true;
  readonly failOn: PreviewFailOn;
  readonly output: (typeof PREVIEW_OUTPUTS)[number];
}

/** @throws CliError, ApiError */
export async function runPreview(args: readonly string[], flags: PreviewFlags): Promise<void> {
  const { filename, from, objects } = flags;
  const isOfFiles =
    filename !== undefined && from !== undefined && !REVISION_NUMBER.test(from) && objects !== undefined;
  using connected = isOfFiles ? undefined : await connect(flags);
  const progress = new Progress();
  const installation =
    connected === undefined
      ? INSTALLATION
      : await installationOfCluster(connected, flags.productNamespace, (text) => progress.note(text));
  const versions = await previewedVersions(args, connected, { ...flags, installation });
  const files = objects && (await objectsOfFiles(objects, { isRecursive: true, namespace: flags.namespace }));
  files?.notes.forEach((note) => progress.note(note));
  const requests = await recordedRequests(flags.requests ?? []);
  const preview = await compared({ versions, files, requests, connected, flags }, progress);
  const report = { ...preview, policy: versions.name, old: versions.old.label, new: versions.new.label };
  process.stdout.write(previewText(report, flags.output));
  process.exitCode = exitCodeOfPreview(report, flags.failOn);
}

interface Run {
  readonly versions: PreviewedVersions;
  readonly files: AuditedFiles | undefined;
  readonly requests: readonly RecordedRequest[];
  readonly connected: Connected | undefined;
  readonly flags: PreviewFlags;
}

async function compared(run: Run, progress: Progress): Promise<Preview> {
  const { versions, files, requests, connected, flags } = run;
  const given = files?.objects.map(({ object }) => asJson(object)) ?? [];
  const ofOld = [...versions.old.objects, ...given];
  await using oldHost = await startedHost(run, ofOld, progress);
  const ofNew = versions.new.objects;
  await using newHost = ofNew.length === 0 ? undefined : await startedHost(run, [...ofNew, ...ofOld], progress);
  const host = newHost === undefined ? oldHost : new SeparateHosts({ old: oldHost, new: newHost });
  const scope = {
    ...(flags.namespace === undefined || files !== undefined ? {} : { namespace: flags.namespace }),
    ...(flags.includeSecrets === true ? { includesSecrets: true } : {}),
    hasCluster: connected !== undefined,
  };
  const { exceptions, coverage } = await exceptionsInForce(run, [...ofNew, ...ofOld]);
  return await progress.during('loading policies', async (update) => {
    const text = new ProgressText();
    const options = {
      host,
      old: versions.old.policies,
      new: versions.new.policies,
      exceptions,
      scope,
      requests,
      onProgress: (one: Parameters<ProgressText['of']>[0]) => update(text.of(one)),
    };
    const preview =
      files === undefined
        ? await previewCluster(clusterOf(connected), options)
        : await previewObjects(files.objects, options);
    return { ...preview, coverage: [...coverage, ...preview.coverage] };
  });
}

/** Those of files, and those that the controller has accepted for the policy of the cluster. */
async function exceptionsInForce(
  { versions, connected, flags }: Run,
  objects: readonly JsonObject[],
): Promise<{ readonly exceptions: readonly ExceptionTerms[]; readonly coverage: readonly Coverage[] }> {
  const given = exceptionsAmong(objects);
  if (connected === undefined) {
    return { exceptions: given, coverage: [] };
  }
  const policies = [...versions.new.policies, ...versions.old.policies];
  const { namespace } = flags;
  const found = await exceptionsOfCluster(connected.cluster, policies, namespace === undefined ? {} : { namespace });
  return { exceptions: [...given, ...found.exceptions], coverage: found.coverage };
}

/** A host for policies that look up given objects, and those of the cluster. */
async function startedHost(
  { connected, flags }: Run,
  objects: readonly JsonObject[],
  progress: Progress,
): Promise<EvaluationHost> {
  const lookups = {
    cluster: connected?.cluster,
    ...(objects.length === 0 && connected !== undefined ? {} : { objects }),
  };
  const host = await auditHost(flags, lookups, (text) => progress.note(text));
  await host.start();
  return host;
}

function clusterOf(connected: Connected | undefined): Connected['cluster'] {
  if (connected === undefined) {
    throw new Error('expected a cluster where no files have the objects');
  }
  return connected.cluster;
}
