/** What every store keeps and answers. A store's own test gives its name and how an empty one is opened. */
import { describe } from 'vitest';
import { describeAttachments } from './store/attachments.js';
import { describeBounces } from './store/bounces.js';
import { describeCalls } from './store/calls.js';
import { describeCampaignBatches } from './store/campaign-batches.js';
import { describeCampaigns } from './store/campaigns.js';
import { describeCompositions } from './store/compositions.js';
import { describeDeliveries } from './store/deliveries.js';
import { describeErasures } from './store/erasures.js';
import { describeFields } from './store/fields.js';
import { describeFigures } from './store/figures.js';
import type { OpenEmpty } from './store/fixture.js';
import { describeImports } from './store/imports.js';
import { describeLimitHolders } from './store/limit-holders.js';
import { describeLimits } from './store/limits.js';
import { describeLists } from './store/lists.js';
import { describeMessageActions } from './store/message-actions.js';
import { describeMessagePages } from './store/message-pages.js';
import { describeQueue } from './store/queue.js';
import { describeQueuePauses } from './store/queue-pauses.js';
import { describeSubmissions } from './store/submissions.js';
import { describeSubscribers } from './store/subscribers.js';
import { describeSubscriptions } from './store/subscriptions.js';
import { describeSuppressions } from './store/suppressions.js';
import { describeTokens } from './store/tokens.js';

export function storeSuite(name: string, open: OpenEmpty): void {
	describe(`a store on ${name}`, () => {
		describeLists(open);
		describeSubscribers(open);
		describeSubscriptions(open);
		describeSuppressions(open);
		describeFields(open);
		describeTokens(open);
		describeSubmissions(open);
		describeQueue(open);
		describeCompositions(open);
		describeQueuePauses(open);
		describeLimits(open);
		describeLimitHolders(open);
		describeMessageActions(open);
		describeMessagePages(open);
		describeCampaigns(open);
		describeCampaignBatches(open);
		describeCalls(open);
		describeImports(open);
		describeFigures(open);
		describeErasures(open);
		describeAttachments(open);
		describeDeliveries(open);
		describeBounces(open);
	});
}
