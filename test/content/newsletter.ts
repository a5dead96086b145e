/** A newsletter with 40 links, variables, UTF-8, and a style sheet that can be inlined only in part. */

const styles = `
	body { margin: 0; padding: 0; background: #f4f5f6; font-family: "DejaVu Sans", Helvetica, sans-serif; font-size: 16px; line-height: 1.4; color: #223344 }
	table { border-collapse: separate; width: 100% }
	table td { vertical-align: top }
	.container { margin: 0 auto; max-width: 600px; padding: 24px; width: 600px }
	.main { background: #ffffff; border: 1px solid #eaebed; border-radius: 16px; width: 100% }
	.wrapper { box-sizing: border-box; padding: 24px }
	h1, h2 { font-weight: bold; margin: 0 0 16px }
	h1 { font-size: 28px }
	p { margin: 0 0 16px; font-weight: normal }
	p.lead { font-size: 18px !important; color: #335577 }
	.articles > tbody > tr:nth-child(even) td { background: #f0f4f8 }
	.articles td + td { text-align: right }
	.articles td { padding: 6px 8px; border-bottom: 1px solid #dde }
	a { color: #0867ec; text-decoration: underline }
	a:hover { color: #aa3300 }
	.btn a { background-color: #0867ec; border-radius: 4px; color: #ffffff; display: inline-block; font-weight: bold; padding: 12px 24px; text-decoration: none }
	.preheader { display: none; max-height: 0; overflow: hidden }
	.footer, .footer p, .footer a { color: #9a9ea6; font-size: 13px; text-align: center }
	ul li::marker { color: #cc3366 }
	p.note::before { content: "→ "; color: #cc3366 }
	@media only screen and (max-width: 640px) {
		.container { width: 100% !important; padding: 8px !important }
		.main p, .main td { font-size: 18px !important }
		.btn a { display: block !important; width: 100% !important; box-sizing: border-box }
	}
	@media (prefers-color-scheme: dark) { .main { background: #1b2733 } }
`;

const articles = Array.from({ length: 36 }, (_, index) => {
	const href = `https://shop.example/articles/${index + 1}?utm_source=news&amp;utm_medium=mail&amp;for=#email#`;
	return `<tr><td><a href="${href}">Item ${index + 1}: Grüße &amp; more</a></td><td>${(index * 7) % 50},90 €</td></tr>`;
}).join('\n');

export const newsletter = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>News</title><style>${styles}</style>
<!--[if mso]><style>table { border-collapse: collapse }</style><![endif]--></head>
<body><span class="preheader">What is new this week, #name#</span>
<table role="presentation" class="container"><tr><td><table role="presentation" class="main"><tr><td class="wrapper">
<h1>Dear #name# from #city#,</h1><p class="lead">here is what is new — 新しい — 🎉.</p>
<table class="articles">${articles}</table>
<p class="note">A long line: ${'Lorem ipsum dolor sit amet, consectetur adipiscing elit. '.repeat(12)}</p>
<ul><li>first</li><li><a href="https://shop.example/second">second</a></li></ul>
<p class="btn"><a href="#offer#">See the offer</a></p>
<p style="color: #993300; font-weight: bold">Written by <a href="https://shop.example/about">us</a>, read by <a href="mailto:a@shop.example">you</a>.</p>
</td></tr></table>
<div class="footer"><p>You asked for it. <a href="#unsubscribe_url#">Unsubscribe</a> or <a href="https://shop.example/imprint">who we are</a>.</p></div>
</td></tr></table></body></html>
`;
