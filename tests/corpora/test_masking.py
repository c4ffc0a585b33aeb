import pytest

from rejoinder.corpora.masking import mask


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to jo.smith+x@mail.example.co.uk.", "write to [email]."),
        ("请发到zhang@qq.com谢谢", "请发到[email]谢谢"),
        ("see https://shop.example.com/reset?token=af93kd&u=7 now", "see https://shop.example.com/[masked] now"),
        ("https://x.example/a/9f8e7d6c5b4a39281706f5e4 ok", "https://x.example/[masked] ok"),
        ("https://help.example.com/en/returns", "https://help.example.com/en/returns"),
        ("http://t.cn/RQabc12，谢谢", "http://t.cn/RQabc12，谢谢"),
        ("card 4111 1111 1111 1111 exp 12/27", "card [card] exp 12/27"),
        ("4111-1111-1111-1111", "[card]"),
        ("IBAN DE89 3704 0044 0532 0130 00 please", "IBAN [account] please"),
        ("GB29NWBK60161331926819", "[account]"),
        ("my router is 192.168.1.17, yes", "my router is [ip], yes"),
        ("2001:db8::8a2e:370:7334", "[ip]"),
        ("mac 00:1A:2b:3c:4D:5e", "mac [mac]"),
        ("call +44 20 7946 0958 or (020) 7946 0958", "call [phone] or [phone]"),
        ("call 212-555-0123.", "call [phone]."),
        ("电话13812345678，座机010-62345678", "电话[phone]，座机[phone]"),
        ("客服400-810-0000", "客服[phone]"),
        ("身份证11010519491231002X", "身份证[id]"),
        ("account 12345678", "account [number]"),
        ("order 1234 5678 9012", "order [number]"),
        ("order 1234-5678-9012-3456.", "order [number]."),
        ("member 1234.5678.9012, thanks", "member [number], thanks"),
        ("ticket 12-345-678", "ticket [number]"),
        ("订单号302-1234567-7654321谢谢", "订单号[number]谢谢"),
        ("756.1234.5678.97", "[number]"),
        ("AB-1234-5678 at 10:30", "AB-[number] at 10:30"),
        ("1234 5678 10:30", "[number] 10:30"),
        ("on 20.01.2013 1234 5678", "on 20.01.2013 [number]"),
        ("line 2 020 7946 0958", "line 2 [number]"),
        ("IBAN DE89 3704 0044 0532 0130 02 is wrong", "IBAN DE89 [number] is wrong"),
        ("My name is John Smith and", "My name is [name] and"),
        ("Dear Mr. Smith, hello", "Dear Mr. [name], hello"),
        ("Dear John,\nthank you", "Dear [name],\nthank you"),
    ],
)
def test_personal_data_is_replaced(text, masked):
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "I upgraded to 14.04.1 on 2013-01-24 at 10:30:15 for 1,299.99",
        "it says error 404 and code 0x80070057",
        "order 12345, 2 x 500 GB, version 1.2.3",
        "10:30:15 to 11:00",
        "Dear Customer, hello. Dear Sir or Madam,",
        "Hi there, Hello World! Thanks",
        "红米手机2A增强版，4G内存，2015年12月31日",
        "ratio 3:2:1",
        "call 911 or 10086",
        "on 2013-01-20, 20.01.2013, 2013.01.20 and 01-20-2013",
        "20 01 2013 10:30 and 2013 01 20",
        "2024/05/01 1234",
        "2013-01-20 10:30:15 to 2013-01-21 11:45",
        "2013-01-20-10-45-59",
        "from 2013-2014, or 2014 2015 2016",
        "windows 10.0.19045.3693, driver 23.20.16.4973, acrobat 2021.003.20155",
        "kernel 4.15.0-213.224 and 5.4.0-150-generic",
        "it cost 123456.78, 12.345.678,00 or 12,345,678.90",
        "10 000 000, 2 500 000 000 or 1000-2000",
        "12 345 678 EUR, $ 12 345 678, 123 456 789元",
        "1 2 3 4 5 6 7 8",
        "流量300M国内流量+500M省内流量+500M, 1+1",
        "",
    ],
)
def test_other_things_stay(text):
    assert mask(text) == text
