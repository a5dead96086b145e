/** A database of PostgreSQL: its server, how durable its commits are, and what is left of its connections. */
import { type Micros, microsPerSecond } from '../../../api/datetime.js';
import { oldestPostgres, type ReplicaFacts } from '../../../store/maintenance.js';
import { sizeText, spanText } from '../../render/units.js';
import { noContents } from '../contents-checks.js';
import type { Inspected, InspectedServer } from '../inspection.js';
import { type Check, type CheckEnvironment, ok, problem, skipped, type Verdict, warning } from '../model.js';
import { closedFix, judgeSchema } from './database.js';

const clockSlack: Micros = 2 * microsPerSecond;
/** Farther behind, a replica is not read. */
const mostBehind: Micros = 5 * microsPerSecond;

/** `database.…` of a server; all but the first are skipped where it cannot be looked into. */
export function serverChecks(found: Inspected, { line }: Pick<CheckEnvironment, 'line'>): Check[] {
	const opened = (judge: (database: InspectedServer) => Verdict) => async () =>
		found.kind === 'server' ? judge(found.database) : noContents(found);
	return [
		{ name: 'database.server', run: async () => judgeServer(found, line) },
		{ name: 'database.schema', run: opened(({ schema }) => judgeSchema(schema, line)) },
		{ name: 'database.durability', run: opened(({ server }) => unlessDistributed(server, judgeDurability)) },
		{
			name: 'database.connections',
			run: opened(({ server }) => unlessDistributed(server, judgeConnections)),
		},
		{ name: 'database.clock', run: opened(({ server }) => judgeClock(server)) },
		...namedBy(found).map((replica) => ({
			name: 'database.replica' as const,
			run: async () => judgeReplica(replica),
		})),
	];
}

function namedBy(found: Inspected): readonly ReplicaFacts[] {
	return found.kind === 'server' ? found.database.server.named : [];
}

function judgeReplica({ host, failure, isOther, isReplica, behind }: ReplicaFacts): Verdict {
	const says = `the replica ${host}`;
	const still = 'the primary answers in its place';
	const fix = 'correct ?replica= in --db or MAILCTL_DB';
	if (failure !== null)
		return warning(`${says} does not answer, and ${still}: ${failure}`, closedFix('unreachable'));
	if (isOther) return warning(`${says} follows another system than this database, and ${still}`, fix);
	if (!isReplica) return warning(`${says} takes writes itself, and ${still}`, fix);
	if (behind === 0) return ok(`${says} is of the same system and has everything`);
	const late = Number.isFinite(behind) ? `${spanText(behind)} behind` : 'behind for an unknown time';
	return behind > mostBehind
		? warning(
				`${says} is ${late}, and ${still}`,
				'look at its log, and at pg_stat_replication of the primary',
			)
		: ok(`${says} is of the same system, ${late}`);
}

function judgeServer(found: Inspected, line: CheckEnvironment['line']): Verdict {
	if (found.kind === 'missing')
		return problem(`there is no database at ${found.path}`, line('engine', 'init', '--db', found.path));
	if (found.kind === 'closed') return problem(found.message, closedFix(found.code));
	if (found.kind === 'open') return skipped('it is a file');
	const { kind, version, major, bytes, isReadOnly, isEncrypted } = found.database.server;
	const isDistributed = kind === 'distributed';
	const what = isDistributed
		? `${version}, as a distributed database (?server=distributed)`
		: `PostgreSQL ${version}, ${sizeText(bytes)}`;
	const says = `${what}, ${isEncrypted ? 'over TLS' : 'without TLS'}`;
	if (isReadOnly)
		return problem(`${says}: it is read-only, a replica or made so`, 'name the primary with --db');
	if (major < oldestPostgres && !isDistributed)
		return problem(`${says}: mailctl needs ${oldestPostgres} or newer`, 'upgrade PostgreSQL');
	return ok(says);
}

type Facts = InspectedServer['server'];

/** It has settings of its own. */
function unlessDistributed(facts: Facts, judge: (facts: Facts) => Verdict): Verdict {
	return facts.kind === 'distributed' ? skipped('a distributed database does not say') : judge(facts);
}

function judgeDurability({ synchronousCommit, standbys, replicas }: Facts): Verdict {
	if (synchronousCommit === 'off')
		return problem(
			'synchronous_commit is off: what is acknowledged may be lost when the server fails',
			'ALTER DATABASE … RESET synchronous_commit',
		);
	if (standbys === '' && replicas > 0)
		return warning(
			'commits do not wait for the replicas (synchronous_standby_names is empty): a failover may lose the last',
			"ALTER SYSTEM SET synchronous_standby_names = '*'",
		);
	if (standbys === '')
		return ok(
			'commits wait for the disk of the server; without a synchronous replica a failover may lose the last',
		);
	if (synchronousCommit === 'local')
		return warning(
			`commits do not wait for the replicas (synchronous_commit is local): a failover may lose the last`,
			'ALTER DATABASE … SET synchronous_commit = on',
		);
	return ok(`commits wait for the disk and for ${standbys}`);
}

function judgeConnections({ connections, mostConnections }: Facts): Verdict {
	const says = `${connections} of ${mostConnections} connections are in use`;
	return connections > 0.8 * mostConnections
		? warning(says, 'a smaller ?pool=, a pooler such as PgBouncer, or a larger max_connections')
		: ok(says);
}

function judgeClock({ ahead }: Facts): Verdict {
	const off = spanText(Math.abs(ahead));
	return Math.abs(ahead) > clockSlack
		? warning(
				`the server's clock is ${off} ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`,
				'let NTP keep the clocks of both: timedatectl set-ntp true',
			)
		: ok("the server's clock agrees with this machine's");
}
