// `portcullis break-glass status`: what is disarmed, and why.
import { Command } from 'commander';
import {
  ANNOTATIONS,
  keyOf,
  type KubernetesObject,
  POLICY_KINDS,
  POLICY_SERVERS,
  type ResourceType,
} from '../../resources/index.ts';
import { addConnectionFlags, type ClusterFlags, connect } from '../cluster/cluster-flags.ts';
import { listReadable } from '../../cluster/index.ts';
import { objectName } from '../cluster/resource-arguments.ts';
import { oneLine } from '../table.ts';

export function disarmedCommand(): Command {
  return addConnectionFlags(
    new Command('status').description('show which policies and PolicyServers are disarmed, and why'),
  )
    .addHelpText('after', '\nExample:\n  portcullis break-glass status')
    .action(status);
}

async function status(flags: ClusterFlags): Promise<void> {
  using connected = await connect(flags);
  const { cluster, namespace } = connected;
  const lines: string[] = [];
  const unread: string[] = [];
  const types: readonly ResourceType[] = [POLICY_SERVERS, ...POLICY_KINDS];
  for (const type of types) {
    const { items, scope } = await listReadable(cluster, type, namespace);
    lines.push(...items.flatMap((object) => disarmedLine(type, object)));
    unread.push(...(scope === 'all' ? [] : [`${type.resource}${scope === 'namespace' ? ` of other namespaces` : ''}`]));
  }
  if (unread.length > 0) {
    process.stderr.write(`note: not looked at, because you may not list them: ${unread.join(', ')}\n`);
  }
  const none = unread.length === 0 ? 'Nothing is disarmed.' : 'Nothing that you may list is disarmed.';
  process.stdout.write(lines.length === 0 ? `${none}\n` : `${lines.join('\n')}\n`);
}

function disarmedLine(type: ResourceType, object: KubernetesObject): readonly string[] {
  const reason = object.metadata.annotations?.[ANNOTATIONS.disarmed];
  const { name, namespace } = keyOf(object);
  const place = namespace === undefined ? '' : ` -n ${namespace}`;
  return reason === undefined ? [] : [oneLine(`${objectName(type, name)}${place}: ${reason}`)];
}
