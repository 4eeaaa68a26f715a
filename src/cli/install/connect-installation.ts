import { EMBEDDED_BUILD } from '../../cluster/index.ts';
import { type ClusterFlags, connect, type Connected } from '../cluster/cluster-flags.ts';
import { CliError } from '../errors.ts';

/**
 * Connects to the cluster that the product is, or is to be, installed in. Not to that of `portcullis start`, which is what the
 * flags name in a folder where that runs: it has a controller, and no nodes for pods.
 * @throws CliError when there is none, or it is that of `portcullis start`
 */
export async function connectInstallation(flags: ClusterFlags): Promise<Connected> {
  const connected = await connect(flags);
  const { gitVersion } = await connected.cluster.version();
  if (gitVersion.endsWith(EMBEDDED_BUILD)) {
    connected[Symbol.dispose]();
    throw new CliError('this is the cluster of `portcullis start`, which has no nodes: nothing is installed there', {
      hint: 'Nothing was changed. Name your cluster with --kubeconfig FILE or --context NAME; $KUBECONFIG and .portcullis/kubeconfig come before ~/.kube/config.',
    });
  }
  return connected;
}
